# SPDX-License-Identifier: Apache-2.0
"""SI-SDR of sines, whose products are known."""

from __future__ import annotations

import numpy as np
import pytest

from blockwave.quality.distortion import MAX_SI_SDR_DB, si_sdr_db

# Whole turns: sine and cosine are orthogonal and equally strong.
TURNS = 2 * np.pi * np.arange(24_000) / 240
SINE, COSINE = np.sin(TURNS), np.cos(TURNS)


@pytest.mark.parametrize("amplitude", [10.0, 1.0, 0.1, 1e-3])
def test_orthogonal_noise(amplitude: float):
    """||s||^2 / ||a n||^2 = 1 / a^2."""
    assert si_sdr_db(SINE + amplitude * COSINE, SINE) == pytest.approx(-20 * np.log10(amplitude), abs=1e-9)


def test_gain_and_sign_do_not_matter():
    noisy = SINE + 0.1 * COSINE
    for gain in (0.01, -7.0):
        assert si_sdr_db(gain * noisy, SINE) == pytest.approx(20)


def test_ends_of_the_scale():
    assert si_sdr_db(SINE, SINE) == MAX_SI_SDR_DB
    assert si_sdr_db(COSINE, SINE) == pytest.approx(-MAX_SI_SDR_DB)
    assert si_sdr_db(np.zeros(9), np.ones(9)) is None
    assert si_sdr_db(np.ones(9), np.zeros(9)) is None
