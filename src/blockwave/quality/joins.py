# SPDX-License-Identifier: Apache-2.0
"""Clicks where a sound was put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import OptionError

_NEAR = 2  # samples on each side of a join that belong to it: a resampler or a filter may smear the step
_AROUND_S = 0.01  # what a join is compared with: ten milliseconds on each side, about one period of a low voice
_USUAL = 0.99  # of the same measure at all other places of the sound


def join_roughness(samples: np.ndarray, rate: int, joins: Sequence[int]) -> float | None:
    """How rough the roughest join is, in units of what the same sound reaches at 1 of 100 other places.

    A click is an error that prediction from the samples before does not explain (Godsill and Rayner 1998, "Digital
    Audio Restoration", chapter 5). The prediction here is a straight line: e[n] = x[n] - 2 x[n-1] + x[n-2]. The measure
    of a place is the largest |e| within two samples of it over the root mean square of e ten milliseconds around it.
    About 1 and below is no click; a step that a sound does not have elsewhere is far above.

    Args:
        samples: float [L].
        rate: Hz.
        joins: the first samples of pieces, each in 1..L-1.

    Returns:
        None where there is no join, or where the sound is silent around all of them.

    Raises:
        OptionError: a join outside the sound.
    """
    outside = [join for join in joins if not 0 < join < len(samples)]
    if outside:
        raise OptionError(f"joins: got {outside[0]}, expected samples 1 to {len(samples) - 1}, inside the sound")
    measure = _roughness(samples.astype(np.float64), round(_AROUND_S * rate))
    at_joins = [measure[join] for join in joins if np.isfinite(measure[join])]
    if not at_joins:
        return None
    elsewhere = np.isfinite(measure)
    for join in joins:
        elsewhere[max(join - 2 * _NEAR, 0) : join + 2 * _NEAR + 1] = False
    usual = float(np.quantile(measure[elsewhere], _USUAL)) if elsewhere.any() else 0.0
    return float(max(at_joins)) / usual if usual else None


def _roughness(x: np.ndarray, around: int) -> np.ndarray:
    """The measure of every sample [L]; not finite where the sound around is a straight line, silence for one."""
    errors = np.zeros(len(x))
    errors[2:] = x[2:] - 2 * x[1:-1] + x[:-2]
    peaks = np.lib.stride_tricks.sliding_window_view(np.pad(np.abs(errors), _NEAR), 2 * _NEAR + 1).max(axis=1)
    own = _sums(np.square(errors), 2 * _NEAR)
    # The join's own error is left out of what it is compared with, or a click would raise its own bar.
    count = _sums(np.ones(len(x)), around) - _sums(np.ones(len(x)), 2 * _NEAR)
    energy = np.maximum(_sums(np.square(errors), around) - own, 0.0)
    # Running sums leave rounding where there is silence; what is below it is no sound.
    floor = np.finfo(np.float64).eps * np.square(errors).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(energy > floor, peaks / np.sqrt(energy / count), np.nan)


def _sums(values: np.ndarray, reach: int) -> np.ndarray:
    """Of every place, the sum from ``reach`` before to ``reach`` behind."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(len(values))
    return total[np.minimum(places + reach + 1, len(values))] - total[np.maximum(places - reach, 0)]
