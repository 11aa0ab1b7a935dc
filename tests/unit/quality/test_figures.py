# SPDX-License-Identifier: Apache-2.0
"""All figures of one pair, and pairs that cannot be compared."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from blockwave import AudioError
from blockwave.encoder import Sound
from blockwave.quality.distortion import MAX_SI_SDR_DB
from blockwave.quality.figures import FIGURES, check_pair, compare_sounds, missing_figures, show
from blockwave.quality.picture import save_comparison_picture

RATE = 24_000
SAMPLES = (0.1 * np.random.default_rng(0).normal(size=RATE)).astype(np.float32)
NOISE = Sound(SAMPLES, RATE)


def test_equal_sounds():
    values = compare_sounds(NOISE, NOISE)
    assert {key: values[key] for key in ("log_mel", "log_mel_worst_block", "spectral_convergence", "level_db")} == {
        "log_mel": 0,
        "log_mel_worst_block": 0,
        "spectral_convergence": 0,
        "level_db": 0,
    }
    assert values["si_sdr_db"] == MAX_SI_SDR_DB
    assert values.keys() <= FIGURES.keys()


def test_half_the_gain():
    """-6.02 dB: every logarithm ln 2 lower, the spectrum half as far, the waveform's shape the same."""
    values = compare_sounds(Sound(SAMPLES / 2, RATE), NOISE)
    assert values["log_mel"] == pytest.approx(np.log(2), rel=1e-4)
    assert values["log_mel_worst_block"] == pytest.approx(np.log(2), rel=1e-4)
    assert values["spectral_convergence"] == pytest.approx(0.5)
    assert values["si_sdr_db"] == MAX_SI_SDR_DB
    assert values["level_db"] == values["worst_block_level_db"] == pytest.approx(-20 * np.log10(2))


def test_without_the_extras(monkeypatch):
    monkeypatch.setitem(sys.modules, "pystoi", None)
    monkeypatch.setitem(sys.modules, "pesq", None)
    assert missing_figures().keys() == {"stoi", "pesq"}
    values = compare_sounds(NOISE, NOISE)
    assert (values["stoi"], values["pesq"], show("stoi", values["stoi"])) == (None, None, "-")


def test_pairs_that_cannot_be_compared():
    with pytest.raises(AudioError, match="a: got 16000 Hz and 24000 Hz in b, expected one rate; resample one of them"):
        check_pair(Sound(SAMPLES, 16_000), NOISE, "a", "b")
    message = r"a: got 23760 samples \(0.990 s\) and 24000 samples \(1.000 s\) in b, expected one length; cut both"
    with pytest.raises(AudioError, match=message):
        check_pair(Sound(SAMPLES[240:], RATE), NOISE, "a", "b")
    check_pair(NOISE, NOISE, "a", "b")


@pytest.mark.parametrize("difference", [0.0, 1.0])
def test_a_picture_of_both(tmp_path, difference: float):
    mel = np.linspace(-11, 2, 80 * 100).reshape(100, 80).astype(np.float32)
    path = save_comparison_picture(tmp_path / "a.png", mel + np.float32(difference), mel, 24, ("a", "b"))
    assert path.read_bytes().startswith(b"\x89PNG")
