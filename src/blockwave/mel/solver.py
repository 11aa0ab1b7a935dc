# SPDX-License-Identifier: Apache-2.0
"""Explicit Runge-Kutta methods as tables, and one function that integrates with any of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from torch import Tensor

from ..errors import OptionError

Velocity = Callable[[Tensor, float], Tensor]


@dataclass(frozen=True)
class Tableau:
    """A Butcher tableau.

    Attributes:
        name: how the method is asked for.
        nodes: c, when each stage is evaluated, as a fraction of the step.
        stages: a, for every stage the weights of the velocities before it.
        weights: b, of the velocities in the step.
    """

    name: str
    nodes: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]


EULER = Tableau("euler", (0.0,), ((),), (1.0,))
MIDPOINT = Tableau("midpoint", (0.0, 0.5), ((), (0.5,)), (0.0, 1.0))
# Of the second-order methods with two stages (Hairer, Norsett and Wanner, 1993, Solving Ordinary Differential Equations
# I, section II.1) the one with node 0.6, between the midpoint rule (0.5) and Ralston's (2/3): nearest to the exact mel.
TWO_STAGES = Tableau("rk2", (0.0, 0.6), ((), (0.6,)), (1 / 6, 5 / 6))
# Kutta, 1901, the 3/8 rule; RungeKutta4ODESolver in transformers.
KUTTA_38 = Tableau(
    "rk4",
    (0.0, 1 / 3, 2 / 3, 1.0),
    ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
    (1 / 8, 3 / 8, 3 / 8, 1 / 8),
)
SOLVERS = {tableau.name: tableau for tableau in (KUTTA_38, TWO_STAGES, MIDPOINT, EULER)}


def find_solver(name: str) -> Tableau:
    """The tableau of a name.

    Raises:
        OptionError: an unknown name.
    """
    if not isinstance(name, str) or name not in SOLVERS:
        raise OptionError(f"solver: got {name!r}, expected one of {sorted(SOLVERS)}")
    return SOLVERS[name]


def stage_times(tableau: Tableau, start: float, end: float) -> tuple[float, ...]:
    """When the stages of one step are evaluated, in float32 like the reference's."""
    step = np.float32(end) - np.float32(start)
    inner = (float(np.float32(start) + step * np.float32(node)) for node in tableau.nodes)
    return tuple(end if node == 1.0 else time for node, time in zip(tableau.nodes, inner, strict=True))


def evaluation_times(tableau: Tableau, points: Sequence[float]) -> tuple[float, ...]:
    """All distinct times of a solve, ascending."""
    spans = pairwise(points)
    return tuple(sorted({time for start, end in spans for time in stage_times(tableau, start, end)}))


def integrate(velocity: Velocity, x: Tensor, points: Sequence[float], tableau: Tableau = KUTTA_38) -> Tensor:
    """Solves dx/dt = velocity(x, t) from points[0] to points[-1]; pure, any shape, reads nothing back."""
    for start, end in pairwise(points):
        step = float(np.float32(end) - np.float32(start))
        slopes: list[Tensor] = []
        for time, row in zip(stage_times(tableau, start, end), tableau.stages, strict=True):
            slopes.append(velocity(_combine(x, slopes, row, step), time))
        x = _combine(x, slopes, tableau.weights, step)
    return x


def _combine(x: Tensor, slopes: Sequence[Tensor], weights: Sequence[float], step: float) -> Tensor:
    for slope, weight in zip(slopes, weights, strict=True):
        x = x.add(slope, alpha=step * weight)
    return x
