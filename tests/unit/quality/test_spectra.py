# SPDX-License-Identifier: Apache-2.0
"""Spectral distances of cases with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from blockwave import OptionError
from blockwave.quality.spectra import log_mel_distance, spectral_convergence

RNG = np.random.default_rng(0)
MEL = RNG.uniform(-11, 2, (60, 80)).astype(np.float32)
WAVE = (0.1 * RNG.normal(size=24_000)).astype(np.float32)


def test_log_mel_of_equal_ones():
    distance = log_mel_distance(MEL, MEL)
    assert (distance.mean, distance.worst_block) == (0, 0)


def test_log_mel_worst_block():
    """0.5 in all of the second block's 24 frames, -0.25 in the last, short block of 12."""
    other = MEL.astype(np.float64)
    other[24:48] += 0.5
    other[48:] -= 0.25
    distance = log_mel_distance(other, MEL, block_frames=24)
    assert distance.mean == pytest.approx((24 * 0.5 + 12 * 0.25) / 60)
    assert distance.worst_block == pytest.approx(0.5)
    assert distance.worst_block_index == 1


def test_log_mel_of_a_gain():
    """A gain g moves every natural logarithm by ln g."""
    assert log_mel_distance(MEL + np.log(2), MEL).mean == pytest.approx(np.log(2), rel=1e-6)


@pytest.mark.parametrize("gain", [0.0, 0.5, 1.0, 3.0])
def test_spectral_convergence_of_a_gain(gain: float):
    assert spectral_convergence(gain * WAVE.astype(np.float64), WAVE) == pytest.approx(abs(1 - gain), abs=1e-12)


def test_spectral_convergence_ignores_phase():
    assert spectral_convergence(-WAVE, WAVE) == pytest.approx(0, abs=1e-12)


def test_spectral_convergence_of_silence_and_of_a_few_samples():
    assert spectral_convergence(WAVE, np.zeros_like(WAVE)) is None
    assert spectral_convergence(WAVE[:5], WAVE[:5]) == 0


def test_unequal_shapes_are_refused():
    with pytest.raises(OptionError, match=r"got shapes \[60, 80\] and \[59, 80\], expected equal ones"):
        log_mel_distance(MEL, MEL[:-1])
    with pytest.raises(OptionError, match="expected equal ones"):
        spectral_convergence(WAVE, WAVE[:-1])
