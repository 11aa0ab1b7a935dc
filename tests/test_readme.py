# SPDX-License-Identifier: Apache-2.0
"""The README says what is: its examples run, its make targets and links exist, and it fits on a screen."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# The released checkpoint's name is a folder here, so that the examples run as they stand, without the network.
MODEL = "Qwen/Qwen2.5-Omni-7B"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(command: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"


def num_samples(path: Path) -> int:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels()) == (24_000, 1)
        return file.getnframes()


def test_python_examples(tmp_path, monkeypatch, capsys):
    run(f"blockwave make-checkpoint --size tiny {MODEL}", tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert "one, two" in README
    assert len(names["one"].samples) != len(names["two"].samples)
    assert names["out"].shape == names["q"].shape
    assert num_samples(tmp_path / "hello.wav") == 480 * len(names["codes"])
    # What the example prints stands beside it as a comment.
    assert capsys.readouterr().out.split("\n")[:-1] == re.findall(r"print\(.*\)  # (.*)", README)


def test_console_examples(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 2
    for command in commands:
        run(command, tmp_path)
    assert num_samples(tmp_path / "hello.wav") == 57_120


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([a-z-]+)", README, re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_one_screen():
    assert len(README.splitlines()) <= 60
