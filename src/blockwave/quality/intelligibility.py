# SPDX-License-Identifier: Apache-2.0
"""Short-time objective intelligibility. The door to pystoi."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import MissingExtraError
from .exactness import check_shapes

# 30 frames of 256 samples at 10 kHz, half overlapping: the shortest segment that the measure is defined on.
_SHORTEST_S = (29 * 128 + 256) / 10_000


def stoi(ours: np.ndarray, reference: np.ndarray, rate: int) -> float | None:
    """STOI of two waveforms [L] at ``rate`` Hz, 1 for equal ones; silent frames of the reference do not count.

    Taal, Hendriks, Heusdens and Jensen 2011, "An Algorithm for Intelligibility Prediction of Time-Frequency Weighted
    Noisy Speech", IEEE TASLP 19(7), computed by the package pystoi. None where less than 0.4 s of speech is left.

    Raises:
        MissingExtraError: pystoi is not installed.
        OptionError: unequal shapes.
    """
    compute = load_stoi()
    check_shapes(ours, reference)
    if len(reference) < _SHORTEST_S * rate or not reference.any():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return float(compute(reference.astype(np.float64), ours.astype(np.float64), rate))
        except RuntimeWarning:  # pystoi: not enough frames are left without the silent ones
            return None


def load_stoi() -> Callable[..., Any]:
    """pystoi's function.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        from pystoi import stoi as compute
    except ImportError:
        raise MissingExtraError(
            'STOI needs pystoi, which is not installed; run: pip install "blockwave[quality]"'
        ) from None
    return compute
