# SPDX-License-Identifier: Apache-2.0
"""The examples run as they stand, in an empty folder, and leave the sounds that they name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import wave
from pathlib import Path

import pytest

import blockwave

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SOURCE = Path(blockwave.__file__).parents[1]


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, example], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    sounds = list(tmp_path.glob("*.wav"))
    assert len(sounds) >= len(set(re.findall(r'save\(f?"([^"{]*)', example.read_text()))) - 1
    for sound in sounds:
        with wave.open(str(sound)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
            assert file.getnframes() % 480 == 0 < file.getnframes()
