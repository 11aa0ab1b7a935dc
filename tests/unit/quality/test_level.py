# SPDX-License-Identifier: Apache-2.0
"""Levels of signals whose root mean square is known."""

from __future__ import annotations

import numpy as np
import pytest

from blockwave.quality.level import level_drift_db, rms_dbfs, worst_block_drift_db

SINE = np.sin(2 * np.pi * np.arange(24_000) / 240)
DB = 10 ** (1 / 20)  # a gain of one decibel


def test_rms():
    assert rms_dbfs(np.ones(10)) == 0
    assert rms_dbfs(SINE) == pytest.approx(-10 * np.log10(2))
    assert rms_dbfs(0.1 * SINE) == pytest.approx(-20 - 10 * np.log10(2))
    assert rms_dbfs(np.zeros(10)) is None
    assert rms_dbfs(np.zeros(0)) is None


def test_drift():
    assert level_drift_db(DB * SINE, SINE) == pytest.approx(1)
    assert level_drift_db(SINE, DB * SINE) == pytest.approx(-1)
    assert level_drift_db(SINE, np.zeros_like(SINE)) is None


def test_worst_block_has_its_sign():
    other = SINE.copy()
    other[2400:4800] *= DB
    other[4800:7200] /= DB**2
    assert worst_block_drift_db(other, SINE, 2400) == pytest.approx(-2)
    assert worst_block_drift_db(SINE, SINE, 2400) == 0


def test_a_gain_step_is_in_its_block():
    """One decibel in the second half of a block: 10 log10((1 + 10^0.1) / 2)."""
    other = SINE.copy()
    other[3600:4800] *= DB
    assert worst_block_drift_db(other, SINE, 2400) == pytest.approx(10 * np.log10((1 + DB**2) / 2))


def test_quiet_blocks_do_not_count_and_lost_ones_do():
    reference = SINE.copy()
    reference[2400:4800] *= 10 ** (-31 / 20)
    other = reference.copy()
    other[2400:4800] *= 5
    assert worst_block_drift_db(other, reference, 2400) == 0
    other[:2400] = 0
    assert worst_block_drift_db(other, reference, 2400) == pytest.approx(-96.3 + 10 * np.log10(2))
    assert worst_block_drift_db(SINE, np.zeros_like(SINE), 2400) is None
