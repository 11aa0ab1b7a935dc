# SPDX-License-Identifier: Apache-2.0
"""Writes command-line.md from the program itself: ``python docs/generate.py``."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from blockwave.cli.app import app

PAGE = Path(__file__).parent / "command-line.md"


def page() -> str:
    """The reference of all commands, as Markdown."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="blockwave")
    text = get_docs_for_click(obj=command, ctx=context, name="blockwave", title="Command line")
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
