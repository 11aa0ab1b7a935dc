# SPDX-License-Identifier: Apache-2.0
"""Solvers have the order of their method, evaluate where and as often as they say, and are pure."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from blockwave.errors import OptionError
from blockwave.mel.schedule import time_points
from blockwave.mel.solver import (
    EULER,
    KUTTA_38,
    MIDPOINT,
    SOLVERS,
    TWO_STAGES,
    evaluation_times,
    find_solver,
    integrate,
    stage_times,
)

TABLEAUS = list(SOLVERS.values())


def uniform(steps, end=1):
    """Points that float32 holds exactly for powers of two."""
    return tuple(end * i / steps for i in range(steps + 1))


def error(steps, tableau):
    """dx/dt = -2 t x^2, x(0) = 1 has the solution 1 / (1 + t^2)."""
    x = integrate(lambda x, t: -2 * t * x * x, torch.ones(1, dtype=torch.float64), uniform(steps, 2), tableau)
    return abs(x.item() - 1 / 5)


@pytest.mark.parametrize(("tableau", "order"), [(EULER, 1), (MIDPOINT, 2), (TWO_STAGES, 2), (KUTTA_38, 4)])
def test_the_error_falls_with_the_order_of_the_method(tableau, order):
    # Stage times are float32 like the reference's; at these steps the method's error is far above their rounding.
    assert math.log2(error(64, tableau) / error(128, tableau)) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("tableau", TABLEAUS, ids=lambda t: t.name)
def test_a_tableau_is_consistent(tableau):
    assert sum(tableau.weights) == pytest.approx(1)
    assert len(tableau.nodes) == len(tableau.stages) == len(tableau.weights)
    for i, (node, row) in enumerate(zip(tableau.nodes, tableau.stages, strict=True)):
        assert len(row) == i
        assert sum(row) == pytest.approx(node)


@pytest.mark.parametrize("tableau", TABLEAUS, ids=lambda t: t.name)
@pytest.mark.parametrize("num_points", [2, 3, 10])
def test_every_step_costs_as_many_evaluations_as_the_method_has_stages(tableau, num_points):
    seen = []

    def velocity(x, t):
        seen.append(t)
        return x

    points = time_points(num_points)
    integrate(velocity, torch.ones(3), points, tableau)
    assert len(seen) == (num_points - 1) * len(tableau.nodes)
    assert tuple(sorted(set(seen))) == evaluation_times(tableau, points)


def test_ten_points_of_kutta_are_28_distinct_times_and_of_euler_9():
    assert len(evaluation_times(KUTTA_38, time_points(10))) == 28
    assert evaluation_times(EULER, time_points(10)) == time_points(10)[:-1]


def test_stage_times_are_those_of_the_published_solver_to_the_bit():
    """RungeKutta4ODESolver forms them from float32 tensors: start + step * (1 / 3), start + step * (2 / 3), end."""
    rounded = 0
    for num_points, sway in ((2, -1.0), (10, -1.0), (33, None), (7, -0.5), (11, -0.5)):
        for start, end in pairwise(torch.tensor(time_points(num_points, sway))):
            step = end - start
            expected = [start, start + step * (1 / 3), start + step * (2 / 3), end]
            assert stage_times(KUTTA_38, start.item(), end.item()) == tuple(t.item() for t in expected)
            rounded += bool(start + step != end)
    assert rounded > 0  # so it matters that the last stage is at the end itself


def test_one_step_is_the_published_formula():
    matrix = torch.tensor([[0.3, -1.0], [0.7, 0.2]], dtype=torch.float64)
    x, h = torch.tensor([1.0, 2.0], dtype=torch.float64), 0.5

    def f(t, x):
        return matrix @ x * (1 + t)

    k1 = f(0.0, x)
    k2 = f(h / 3, x + h * k1 / 3)
    k3 = f(2 * h / 3, x + h * (k2 - k1 / 3))
    k4 = f(h, x + h * (k1 - k2 + k3))
    expected = x + h * (k1 + 3 * (k2 + k3) + k4) / 8
    got = integrate(lambda x, t: f(t, x), x, (0.0, 0.5))
    torch.testing.assert_close(got, expected, rtol=3e-8, atol=0)  # times are float32


@pytest.mark.parametrize("tableau", TABLEAUS, ids=lambda t: t.name)
def test_the_start_is_not_written_and_shape_and_dtype_stay(tableau):
    for shape, dtype in [((), torch.float64), ((5,), torch.float32), ((2, 3, 4), torch.float32)]:
        x = torch.full(shape, 2.0, dtype=dtype)
        out = integrate(lambda x, t: x, x, uniform(2), tableau)
        assert (out.shape, out.dtype) == (x.shape, x.dtype)
        assert (x == 2).all()


def test_solvers_are_found_by_name():
    assert (find_solver("rk4"), find_solver("euler")) == (KUTTA_38, EULER)
    assert (find_solver("midpoint"), find_solver("rk2")) == (MIDPOINT, TWO_STAGES)
    with pytest.raises(OptionError, match=r"solver: got 'heun', expected one of \['euler', 'midpoint', 'rk2', 'rk4'\]"):
        find_solver("heun")
