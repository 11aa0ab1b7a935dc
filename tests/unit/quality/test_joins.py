# SPDX-License-Identifier: Apache-2.0
"""Clicks in signals whose second difference is known."""

from __future__ import annotations

import numpy as np
import pytest

from blockwave import OptionError
from blockwave.quality.joins import join_roughness

RATE, WIDTH = 24_000, 2 * np.pi / 120  # a sine of 200 Hz
SINE = np.sin(WIDTH * np.arange(RATE))
NOISE = np.random.default_rng(0).normal(size=RATE)


def test_a_step_in_a_sine():
    """The sine's second difference is -(2 - 2 cos w) sin, largest 2 - 2 cos w; the step's is its height.

    Elsewhere the measure is largest / rms = sqrt(2) at the crests, where 1 of 100 places is; the join is a zero
    crossing of the difference, so its measure is the step over the rms of the sine's.
    """
    largest = 2 - 2 * np.cos(WIDTH)
    height = 100 * largest
    stepped = SINE + height * (np.arange(RATE) >= 12_001)
    got = join_roughness(stepped, RATE, [12_001])
    # Within 5 %: the step's own places hold a little of the sine, and ten milliseconds are no whole number of turns.
    assert got == pytest.approx((height / (largest / np.sqrt(2))) / np.sqrt(2), rel=0.05)


def test_no_step_no_click():
    crest, crossing = 6_030, 12_000
    assert join_roughness(SINE, RATE, [crossing, crest]) == pytest.approx(1, abs=0.02)
    assert join_roughness(SINE, RATE, [crossing]) < 0.2
    assert join_roughness(NOISE, RATE, [6_000]) < 1.1


def test_a_step_is_told_from_noise_and_its_place_matters():
    stepped = 0.01 * NOISE + 0.3 * (np.arange(RATE) >= 9_000)
    assert join_roughness(stepped, RATE, [6_000, 9_000]) > 3
    assert join_roughness(stepped, RATE, [6_000]) < 1.1


def test_without_joins_or_sound():
    assert join_roughness(SINE, RATE, []) is None
    assert join_roughness(np.zeros(RATE), RATE, [9_000]) is None


@pytest.mark.parametrize("join", [0, RATE, -3])
def test_joins_outside(join: int):
    with pytest.raises(OptionError, match=f"joins: got {join}, expected samples 1 to 23999, inside the sound"):
        join_roughness(SINE, RATE, [join])
