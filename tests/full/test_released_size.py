# SPDX-License-Identifier: Apache-2.0
"""The released size: 449 M parameters. Minutes, and 8 GB of memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import blockwave
from blockwave import Token2Wav
from blockwave.weights.make import make_checkpoint
from tests.reference import load_reference, reference_speech

pytestmark = pytest.mark.full
WEIGHTS_BYTES = 449_051_264 * 4
BOUND = 1e-5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("full") / "checkpoint", "full", shards=4)


def test_equals_transformers_at_released_size(folder: Path) -> None:
    codes = np.random.default_rng(0).integers(1, 8194, 37).tolist()
    ours = Token2Wav.from_pretrained(folder)
    speech = ours(codes, voice="Ethan", seed=0)
    mel, wave = reference_speech(load_reference(folder), codes, ours.voice("Ethan"), seed=0)
    assert 0.02 < np.abs(wave).max() < 0.95
    assert np.abs(speech.mel - mel).max() <= BOUND * np.abs(mel).max()
    assert np.abs(speech.samples - wave).max() <= BOUND * np.abs(wave).max()


_LOAD = """
import sys, threading, pathlib
from blockwave import Token2Wav
def private_kib():
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))
before, peak, done = private_kib(), 0, threading.Event()
def watch():
    global peak
    while not done.wait(0.002):
        peak = max(peak, private_kib())
watcher = threading.Thread(target=watch)
watcher.start()
model = Token2Wav.from_pretrained(sys.argv[1])
done.set()
watcher.join()
print((max(peak, private_kib()) - before) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="private memory is read from Linux's /proc")
def test_loading_needs_little_more_than_the_weights(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(blockwave.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", _LOAD, folder], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 0.9 * WEIGHTS_BYTES < int(done.stdout) <= 1.2 * WEIGHTS_BYTES, done.stdout
