# SPDX-License-Identifier: Apache-2.0
"""How loud a sound is, and how far its level drifts from another's."""

from __future__ import annotations

import numpy as np

from .exactness import check_shapes

# Blocks that are quieter than the whole by more than this are not compared: their ratio is that of two noise floors.
_GATE_DB = -30.0
_SILENCE_DBFS = -96.3  # one step of 16 bits: what a block of nothing counts as


def rms_dbfs(samples: np.ndarray) -> float | None:
    """20 log10 of the root mean square of float [L]; None for silence.

    0 dBFS is a square wave of full scale, as in ITU-T G.100.1 (dBov); a sine of full scale has -3.01.
    """
    rms = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if samples.size else 0.0
    return float(20 * np.log10(rms)) if rms else None


def level_drift_db(ours: np.ndarray, reference: np.ndarray) -> float | None:
    """By how many dB ``ours`` [L] is louder than ``reference`` [L]; None where one of them is silent."""
    one, other = rms_dbfs(ours), rms_dbfs(reference)
    return None if one is None or other is None else one - other


def worst_block_drift_db(ours: np.ndarray, reference: np.ndarray, block_samples: int) -> float | None:
    """The drift of the block whose level is furthest from the reference's, with its sign.

    Blocks of the reference more than 30 dB below its whole are left out. A block of nothing counts as one step of 16
    bits. None where the reference is silent.

    Raises:
        OptionError: unequal shapes.
    """
    check_shapes(ours, reference)
    whole = rms_dbfs(reference)
    if whole is None:
        return None
    drifts: list[float] = []
    for start in range(0, len(reference), block_samples):
        level, ours_level = (_level(samples[start : start + block_samples]) for samples in (reference, ours))
        if level >= whole + _GATE_DB:
            drifts.append(ours_level - level)
    return max(drifts, key=abs)


def _level(samples: np.ndarray) -> float:
    level = rms_dbfs(samples)
    return _SILENCE_DBFS if level is None else max(level, _SILENCE_DBFS)
