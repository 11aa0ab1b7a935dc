# SPDX-License-Identifier: Apache-2.0
"""Time points of a solve: n points on [0, 1], warped by sway sampling (Chen et al., 2024, arXiv 2410.06885, eq. 7)."""

from __future__ import annotations

import torch

from ..errors import OptionError

MIN_POINTS = 2
MAX_POINTS = 1000


def time_points(num_points: int, sway: float | None = -1.0) -> tuple[float, ...]:
    """t + sway (cos(pi t / 2) - 1 + t) for num_points even t from 0 to 1; sway -1 gives 1 - cos(pi t / 2).

    Formed in float32 in the reference's order, so that the values are the same to the bit.

    Raises:
        OptionError: fewer than 2 points (the noise itself would be returned), or a sway that makes time run backwards.
    """
    if isinstance(num_points, bool) or not isinstance(num_points, int) or not MIN_POINTS <= num_points <= MAX_POINTS:
        raise OptionError(
            f"steps: got {num_points!r}, expected an integer from {MIN_POINTS} to {MAX_POINTS}; "
            "steps counts time points, 10 points are 9 steps"
        )
    if sway is not None and (isinstance(sway, bool) or not isinstance(sway, int | float) or not -1 <= sway <= 1.75):
        raise OptionError(f"sway: got {sway!r}, expected a number from -1 to 1.75, or None; time must run forward")
    points = torch.linspace(0, 1, num_points, dtype=torch.float32)
    if sway is not None:
        points = points + sway * (torch.cos(torch.pi / 2 * points) - 1 + points)
    return tuple(points.tolist())
