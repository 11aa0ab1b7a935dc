# SPDX-License-Identifier: Apache-2.0
"""``timeline``: a picture of what ran, and nothing half written where it cannot be drawn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


def test_a_picture_of_three_streams(run):
    result = run("timeline", "-m", "model", "-o", "t.png", "--codes", "48", "--steps", "2", "--batch-blocks", "8")
    assert result.code == 0
    assert Path("t.png").read_bytes().startswith(b"\x89PNG")
    # Three streams of 4 blocks: an emission of one with one beyond, then three; four evaluations of two segments, which
    # are one task where nothing has to wait.
    (tasks,) = re.findall(r"(\d+) tasks of 3 streams", result.err)
    assert 3 * (2 + 3) * 4 <= int(tasks) <= 3 * (2 + 3) * 4 * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--streams", "0"), "streams: got 0, expected 1 to 16"),
        (("--codes", "9999"), "codes: got 9999, expected 1 to 3000"),
        (("--batch-blocks", "1"), "batch-blocks: got 1, expected 2 to 4096"),
        (("-o", "t.jpg"), "out: got 't.jpg', expected a name that ends in .png"),
        (("--look-ahead", "all"), "look_ahead: got 'all', expected a number of blocks >= 0, or 'exact'"),
    ],
)
def test_what_cannot_be_drawn(run, options, message):
    result = run("timeline", "-m", "model", "-o", "t.png", *options)
    assert result.code == 2
    assert message in result.err
    assert not list(Path().glob("t.*"))


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "blockwave", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("blockwave 0.")
