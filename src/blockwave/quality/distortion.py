# SPDX-License-Identifier: Apache-2.0
"""Distortion of a waveform, whatever its gain."""

from __future__ import annotations

import numpy as np

from .exactness import check_shapes

# Samples of 24 significant bits cannot agree to more, 20 log10(2^24): what is above, equality included, counts as this.
MAX_SI_SDR_DB = 144.5


def si_sdr_db(ours: np.ndarray, reference: np.ndarray) -> float | None:
    """Scale-invariant signal-to-distortion ratio of two waveforms [L], in dB, at most MAX_SI_SDR_DB.

    With a = <s, r> / <r, r>: 10 log10(||a r||^2 / ||a r - s||^2); Le Roux, Wisdom, Erdogan and Hershey 2019, "SDR -
    half-baked or well done?" (arXiv 1811.02508). No mean is taken off. None where one of the two is silent.

    Raises:
        OptionError: unequal shapes.
    """
    check_shapes(ours, reference)
    s, r = ours.astype(np.float64), reference.astype(np.float64)
    if not s.any() or not r.any():
        return None
    target = (s @ r) / (r @ r) * r
    signal, noise = float(target @ target), float((target - s) @ (target - s))
    if signal == 0:
        return -MAX_SI_SDR_DB
    ratio_db = 10 * np.log10(signal / noise) if noise else MAX_SI_SDR_DB
    return float(np.clip(ratio_db, -MAX_SI_SDR_DB, MAX_SI_SDR_DB))
