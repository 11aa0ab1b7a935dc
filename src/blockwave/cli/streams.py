# SPDX-License-Identifier: Apache-2.0
"""The two streams: results that were asked for go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer

from ..errors import AudioError, BlockwaveError
from .exits import CLOSED_PIPE, one_line


def note(text: object) -> None:
    """One line for people, on standard error; what cannot be said there stops no work."""
    with suppress(OSError):
        print(one_line(text), file=sys.stderr, flush=True)


def put(data: bytes | str) -> None:
    """Writes a result to standard output; where its reader has gone, the program ends quietly."""
    try:
        if isinstance(data, str):
            sys.stdout.write(data)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        let_go()
        raise typer.Exit(CLOSED_PIPE) from None
    except OSError as error:
        let_go()
        raise AudioError(
            f"standard output: cannot be written ({error.strerror}); expected a file, a pipe or a terminal with room "
            "for the result"
        ) from None


def let_go() -> None:
    """What standard output still holds goes nowhere: the interpreter flushes it once more at its end.

    The way of docs.python.org, library/signal, note on SIGPIPE.
    """
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def take(error: type[BlockwaveError], expected: str) -> bytes:
    """All of standard input; ``error`` where it cannot be read, which says what was ``expected``."""
    try:
        return sys.stdin.buffer.read()
    except OSError as reason:
        raise error(f"standard input: cannot be read ({reason.strerror}); expected {expected}") from None


def put_json(value: Any, *, indent: int | None = None) -> None:
    """One JSON value on standard output: on one line of its own, or indented."""
    put(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent) + "\n")


def put_table(title: str, rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> None:
    """A table on standard output: rows of text under a title."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE, show_header=bool(header))
    for i in range(len(rows[0]) if rows else len(header)):
        table.add_column(header[i] if header else "", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(file=sys.stdout)
    with console.capture() as capture:
        console.print(table)
    put(capture.get())
