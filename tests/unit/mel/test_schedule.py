# SPDX-License-Identifier: Apache-2.0
"""Time points are those of transformers to the bit, and time runs forward."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from blockwave.errors import OptionError
from blockwave.mel.schedule import MAX_POINTS, MIN_POINTS, time_points


def published(num_points, sway):
    """Qwen2_5OmniToken2WavDiTModel.sample: linspace, then += sway (cos(pi / 2 t) - 1 + t), in float32."""
    t = torch.linspace(0, 1, num_points, dtype=torch.float32)
    if sway is not None:
        t += sway * (torch.cos(torch.pi / 2 * t) - 1 + t)
    return t


@pytest.mark.parametrize("sway", [-1.0, -0.5, 0.0, 1, 1.75, None])
@pytest.mark.parametrize("num_points", [2, 3, 10, 11, 33, 1000])
def test_equal_to_the_published_formula_to_the_bit(num_points, sway):
    points = time_points(num_points, sway)
    assert all(type(point) is float for point in points)
    assert torch.equal(torch.tensor(points, dtype=torch.float64), published(num_points, sway).double())


def test_the_default_is_one_minus_cosine():
    for i, point in enumerate(time_points(10)):
        assert point == pytest.approx(1 - math.cos(math.pi / 2 * i / 9), abs=2**-23)


@pytest.mark.parametrize("sway", [-1.0, -0.5, 0.0, 0.7, 1.75, None])
def test_time_runs_forward_from_0_to_1(sway):
    for num_points in (*range(MIN_POINTS, 40), 101, 256, 999, MAX_POINTS):
        points = time_points(num_points, sway)
        assert len(points) == num_points
        assert (points[0], points[-1]) == (0.0, 1.0)
        assert all(a < b for a, b in pairwise(points))


@pytest.mark.parametrize("num_points", [1, 0, -3, MAX_POINTS + 1, 10.0, True, "10", None])
def test_a_number_of_points_outside_its_range_is_refused(num_points):
    with pytest.raises(OptionError) as caught:
        time_points(num_points)
    assert f"steps: got {num_points!r}, expected an integer from 2 to 1000" in str(caught.value)
    assert "10 points are 9 steps" in str(caught.value)


@pytest.mark.parametrize("sway", [-1.01, 1.76, math.nan, math.inf, "fast", True])
def test_a_sway_that_turns_time_back_is_refused(sway):
    with pytest.raises(OptionError, match=r"sway: got .*, expected a number from -1 to 1\.75, or None; time must run"):
        time_points(10, sway)
