# SPDX-License-Identifier: Apache-2.0
"""The command line in this process, in an empty folder that holds a tiny checkpoint called ``model``."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from blockwave.cli import main
from blockwave.weights.make import make_checkpoint

CODES = [3380, 1835, 6379]
# One evaluation of the cheapest kind: these tests are about files and messages. One thread: sums in one order.
QUICK = ("--solver", "euler", "--steps", "2", "--threads", "1")


@dataclass(frozen=True)
class Result:
    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON, one object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "model", "tiny", seed=1)


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def place(tmp_path, monkeypatch, checkpoint) -> Path:
    """The current folder, with ``model`` and ``a.json`` in it."""
    monkeypatch.chdir(tmp_path)
    Path("model").symlink_to(checkpoint)
    Path("a.json").write_text(json.dumps(CODES))
    return tmp_path


@pytest.fixture
def run(place, monkeypatch, capsysbinary):
    def run(*args: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsysbinary.readouterr()
        code = main([str(arg) for arg in args])
        captured = capsysbinary.readouterr()
        return Result(code, captured.out, captured.err.decode())

    return run


@pytest.fixture
def speak(run):
    """``blockwave speak ... --model model`` with a cheap solver."""

    def speak(*args: object, stdin: bytes = b"") -> Result:
        return run("speak", *QUICK, *("--model", "model"), *args, stdin=stdin)

    return speak


def tree(folder: Path) -> set[str]:
    """Names of everything below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
