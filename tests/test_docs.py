# SPDX-License-Identifier: Apache-2.0
"""The documents say what is: their Python runs, their links lead somewhere, the command reference is current."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link.split("#")[0]).exists()] == []


def test_every_page_is_reachable_from_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS if f"docs/{page.name}" not in text] == []


def test_the_command_reference_is_the_programs_own():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "say make docs"
