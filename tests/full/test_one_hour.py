# SPDX-License-Identifier: Apache-2.0
"""One hour of sound, 180,000 codes, by the exact stream: memory that stays, time that is linear, an end like the start.

Six minutes of one core; nearly all of it in a process of its own, where nothing else has used memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import blockwave
from blockwave import Token2Wav
from blockwave.mel.noise import seeded_noise
from tests.full import hour
from tests.full.hour import MINUTE, hour_codes
from tests.held import tensor_bytes
from tests.least import least_checkpoint

pytestmark = pytest.mark.target
MINUTES, SEED = 60, 5
# What a block of the defaults depends on, in codes: 36 evaluations, at each of which two layers look one block back and
# one looks ahead. Three blocks more for the vocoder, which looks 6 frames to either side here.
BEFORE, AFTER = 12 * (72 + 3), 12 * (36 + 3)
# float32 rounds alike everywhere, but the largest of some 10^5 errors differs between two minutes.
LIKE_THE_FIRST = 2.0
EXACT = 1e-5


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return least_checkpoint(tmp_path_factory.mktemp("hour") / "checkpoint")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("minutes")


@pytest.fixture(scope="module")
def run(checkpoint: Path, folder: Path) -> dict[str, Any]:
    """The measurements of the hour."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the highest memory of a while is read from Linux's /proc")
    paths = os.pathsep.join([str(Path(blockwave.__file__).parents[1]), str(Path(__file__).parents[2])])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, hour.__file__, str(checkpoint), str(MINUTES), str(SEED), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_lost_and_nothing_done_twice(run: dict[str, Any]) -> None:
    num_codes = MINUTES * MINUTE
    assert (run["frames"], run["samples"]) == (2 * num_codes, 480 * num_codes)
    assert run["evaluated_blocks"] == 36 * num_codes // 12


def test_memory_is_that_of_one_minute(run: dict[str, Any]) -> None:
    """After the first minute, in which everything is made once."""
    peaks, counts, held = (run[name] for name in ("peak_bytes", "tensors", "tensor_bytes"))
    assert max(peaks[2:]) <= 1.1 * peaks[1], peaks
    # Sharper than resident memory, most of which is libraries. A minute is 250 blocks and ends inside an emission of
    # three: three minutes show every state there is.
    assert max(counts[4:-1]) <= max(counts[1:4]), counts
    assert max(held[4:-1]) <= max(held[1:4]), held


def test_time_is_linear(run: dict[str, Any]) -> None:
    """In batches exactly; in the processor's seconds within half, since other programs slow a core down."""
    batches, spent_s = run["batches"], run["cpu_s"]
    assert max(batches[2:-1]) <= batches[1]
    assert sum(spent_s[-10:]) <= 1.5 * sum(spent_s[:10]), spent_s


def test_the_last_minute_is_as_exact_as_the_first(run: dict[str, Any], checkpoint: Path, folder: Path) -> None:
    """Against float64, each minute with what it depends on as a sequence of its own.

    The reference of the last minute counts its frames from zero: rotary positions are relative, so in float64 that is
    the same, and nothing of it depends on how large numbers are rounded.
    """
    exact = Token2Wav.from_pretrained(checkpoint, dtype="float64")
    codes = hour_codes(MINUTES)
    noise = seeded_noise(SEED, 2 * len(codes), 80)
    errors = {}
    for place, start in (("first", 0), ("last", len(codes) - MINUTE)):
        first, stop = max(0, start - BEFORE), min(len(codes), start + MINUTE + AFTER)
        expected = exact(codes[first:stop], noise=noise[2 * first : 2 * stop])
        for kind, whole, rate in (("mel", expected.mel.ravel(), 160), ("wave", expected.samples, 480)):
            got = np.fromfile(folder / f"{place}.{kind}", np.float32)
            minute = whole[(start - first) * rate :][: MINUTE * rate]
            errors[place, kind] = float(np.abs(got - minute).max() / np.abs(minute).max())
    print(errors)
    for kind in ("mel", "wave"):
        assert errors["first", kind] <= EXACT
        assert errors["last", kind] <= LIKE_THE_FIRST * errors["first", kind], errors


def test_the_instruments_see_what_they_measure(tmp_path: Path) -> None:
    """Memory that was freed does not count after a reset, tensors are counted with what they share."""
    hour.reset_peak()
    before = hour.peak_bytes()
    block = np.ones(50_000_000, np.uint8)
    assert hour.peak_bytes() >= before + 45_000_000
    del block
    hour.reset_peak()
    assert hour.peak_bytes() < before + 25_000_000
    count, held = tensor_bytes()
    kept = torch.zeros(1000)
    views = [kept[1:], kept[2:]]
    assert tensor_bytes() == (count + 3, held + 4000)
    del views
