# SPDX-License-Identifier: Apache-2.0
"""From the natural-log mel that the DiT writes to the range that the vocoder was trained on."""

from __future__ import annotations

import math

from torch import Tensor

_MIN_DB = -115.0
_REFERENCE_DB = 20.0


def normalise(log_mel: Tensor) -> Tensor:
    """Decibels below the reference, scaled so that -115 dB .. 0 dB becomes -1 .. 1.

    The public front end takes exp, 20 log10 with a floor at -115 dB, subtracts 20 and scales; exp and log10 cancel,
    and the floor lies below the lower clamp. What remains is one line: clamp(0.15106 x + 0.65217, -1, 1).

    Args:
        log_mel: natural logarithm of a magnitude mel, any shape, floating point.

    Returns:
        Same shape and dtype, in [-1, 1].
    """
    scale = 2 / -_MIN_DB * 20 / math.log(10)
    offset = 2 * (_MIN_DB + _REFERENCE_DB) / _MIN_DB - 1
    return (log_mel * scale + offset).clamp(-1.0, 1.0)
