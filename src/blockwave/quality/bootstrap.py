# SPDX-License-Identifier: Apache-2.0
"""How sure a mean over sentences is: percentile intervals of the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import OptionError

_RESAMPLES, _LEVEL, _SEED = 10_000, 0.95, 0
_AT_ONCE = 500  # resamples in memory


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def estimate(values: Sequence[float], weights: Sequence[float] | None = None) -> Estimate:
    """sum(values) / sum(weights) over sentences; without weights the mean.

    Sentences are drawn with replacement, 10,000 times from a fixed seed, and the ratio is taken anew; the interval
    holds 95 % of them (Efron 1979; for error rates Bisani and Ney 2004, "Bootstrap estimates for confidence intervals
    in ASR performance evaluation"). Values that are differences of two settings on the same sentence give the
    interval of the paired difference. One sentence has no spread to draw from: both ends are its value.

    Raises:
        OptionError: no values, or another number of weights.
    """
    top = np.asarray(values, np.float64)
    bottom = np.ones_like(top) if weights is None else np.asarray(weights, np.float64)
    if top.ndim != 1 or top.size == 0 or bottom.shape != top.shape:
        raise OptionError(f"estimate: got {top.size} values and {bottom.size} weights, expected as many, at least 1")
    rng, ratios = np.random.default_rng(_SEED), []
    for _ in range(_RESAMPLES // _AT_ONCE):
        drawn = rng.integers(0, len(top), (_AT_ONCE, len(top)))
        ratios.append(top[drawn].sum(axis=1) / bottom[drawn].sum(axis=1))
    low, high = np.quantile(ratios, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Estimate(float(top.sum() / bottom.sum()), float(low), float(high))
