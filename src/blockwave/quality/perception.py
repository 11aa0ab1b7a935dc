# SPDX-License-Identifier: Apache-2.0
"""Perceived quality of speech against a reference. The door to pesq."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..encoder.sound import resample
from ..errors import MissingExtraError
from .exactness import check_shapes

RATE = 16_000


def pesq(ours: np.ndarray, reference: np.ndarray, rate: int) -> float | None:
    """Wide-band PESQ of two waveforms [L] at ``rate`` Hz as MOS-LQO, 1.04 to 4.64; equal ones have 4.64.

    ITU-T P.862 with the wide-band mapping of P.862.2, y = 0.999 + 4 / (1 + exp(-1.3669 x + 3.8224)), computed by the
    package pesq at 16 kHz. Made for telephony: differences are worth more than the value itself. None where it hears no
    utterance, or less than a quarter of a second.

    Raises:
        MissingExtraError: pesq, or for other rates soxr, is not installed.
        OptionError: unequal shapes.
    """
    package = load_pesq()
    check_shapes(ours, reference)
    if not ours.any() or not reference.any():
        return None
    one, other = (resample(x.astype(np.float32), rate, RATE) for x in (ours, reference))
    try:
        return float(package.pesq(RATE, other, one, "wb"))
    except (package.NoUtterancesError, package.BufferTooShortError):
        return None


def load_pesq() -> Any:
    """The package pesq.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import pesq as package  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError(
            'PESQ needs pesq, which is not installed; run: pip install "blockwave[pesq]" (it needs a C compiler)'
        ) from None
    return package
