# SPDX-License-Identifier: Apache-2.0
"""What must not be there is named."""

from __future__ import annotations

import numpy as np

from blockwave.quality.soundness import faults

SINE = 0.5 * np.sin(np.arange(480) / 10)


def test_faults():
    assert faults(SINE) == []
    assert faults(np.zeros(480)) == ["silent"]
    assert faults(np.full(480, 1e-6)) == ["silent"]
    assert faults(np.zeros(0)) == ["no samples"]
    broken = SINE.copy()
    broken[[3, 9]] = np.nan, np.inf
    assert faults(broken) == ["NaN or infinity in 2 of 480 samples"]
    loud = SINE.copy()
    loud[7] = -1.25
    assert faults(loud) == ["1 of 480 samples beyond full scale"]
