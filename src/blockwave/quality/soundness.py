# SPDX-License-Identifier: Apache-2.0
"""What must not be in a rendering, whatever it is compared with."""

from __future__ import annotations

import numpy as np

from ..audio import is_silent


def faults(samples: np.ndarray) -> list[str]:
    """What is wrong with float [L]: nothing there, NaN or infinity, silence in 16 bits, samples beyond full scale."""
    if samples.size == 0:
        return ["no samples"]
    infinite = int((~np.isfinite(samples)).sum())
    if infinite:
        return [f"NaN or infinity in {infinite} of {samples.size} samples"]
    found = []
    if is_silent(samples):
        found.append("silent")
    beyond = int((np.abs(samples) > 1).sum())
    if beyond:
        found.append(f"{beyond} of {samples.size} samples beyond full scale")
    return found
