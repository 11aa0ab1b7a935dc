# SPDX-License-Identifier: Apache-2.0
"""Intervals of samples whose spread is known."""

from __future__ import annotations

import numpy as np
import pytest

from blockwave import OptionError
from blockwave.quality.bootstrap import Estimate, estimate

VALUES = np.random.default_rng(1).normal(3, 2, 400)


def test_no_spread():
    assert estimate([0.25] * 7) == Estimate(0.25, 0.25, 0.25)
    assert estimate([4.0]) == Estimate(4, 4, 4)


def test_a_mean_of_normals():
    """The interval is the mean plus and minus 1.96 standard errors; 10,000 draws know its ends to some percent."""
    got, error = estimate(list(VALUES)), VALUES.std() / np.sqrt(len(VALUES))
    assert got.value == pytest.approx(VALUES.mean())
    assert got.high - got.value == pytest.approx(1.96 * error, rel=0.1)
    assert got.value - got.low == pytest.approx(1.96 * error, rel=0.1)


def test_rates_are_pooled():
    """3 errors in 30 words, not the mean of 1/2 and 2/28; drawn twice, one sentence alone gives the ends."""
    got = estimate([1, 2], [2, 28])
    assert got.value == pytest.approx(0.1)
    assert (got.low, got.high) == (pytest.approx(2 / 28), pytest.approx(0.5))


def test_the_same_again():
    assert estimate(list(VALUES)) == estimate(list(VALUES))


def test_a_paired_difference_is_narrower_than_its_parts():
    shifted = VALUES + 0.1 + 0.01 * np.random.default_rng(2).normal(size=len(VALUES))
    difference = estimate(list(shifted - VALUES))
    assert 0.09 < difference.low < 0.1 < difference.high < 0.11


@pytest.mark.parametrize(("values", "weights"), [([], None), ([1.0], [1.0, 2.0])])
def test_bad_uses(values: list[float], weights: list[float] | None):
    with pytest.raises(OptionError, match="expected as many, at least 1"):
        estimate(values, weights)
