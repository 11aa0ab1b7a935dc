# SPDX-License-Identifier: Apache-2.0
"""What is kept between evaluations: for every block its solver state, for its neighbours their keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from torch import Tensor

from ..mel.solver import stage_times
from ..velocity.segments import KeyValue
from .request import Flow

Waiting = tuple[Tensor, Tensor]  # state [S, C] and projection [S, 3, H, D] of a block before a look-ahead layer


@dataclass
class BlockState:
    """One block on its way from noise to mel.

    Attributes:
        x: [S, M] at the start of the current step.
        input: [S, M], where the next evaluation looks.
        slopes: velocities of the step's stages so far.
        waiting: one entry for every branch while the block waits for the next one.
    """

    x: Tensor
    input: Tensor
    slopes: list[Tensor] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)


@dataclass
class SolveState:
    """One stream's blocks that are under way, and what they leave for each other.

    Attributes:
        blocks: block -> its state.
        kept: (block, evaluation, layer) -> keys and values for the block after it, one for every branch.
        settled: blocks before this index are final, the others are solved again later. What the last final block keeps
            stays until it has been asked for by a final one.
    """

    blocks: dict[int, BlockState] = field(default_factory=dict)
    kept: dict[tuple[int, int, int], list[KeyValue]] = field(default_factory=dict)
    settled: int = 0


@dataclass(frozen=True)
class Stage:
    """One evaluation of a solve.

    Attributes:
        time: when the velocity is evaluated.
        row: weights of the step's velocities so far in the next state that is needed.
        step: length of the step.
        ends_step: the next state is the start of the next step.
        guidance: multiplies the weight of the guidance; at 0 the conditional branch runs alone.
    """

    time: float
    row: tuple[float, ...]
    step: float
    ends_step: bool
    guidance: float


def stages_of(flow: Flow) -> tuple[Stage, ...]:
    """All evaluations of a flow in order, each with how its velocity leads on to the next."""
    tableau, stages = flow.tableau, []
    guidance = _guidance_of(tableau.weights, flow.guidance_per)
    for start, end in pairwise(flow.points):
        step = float(np.float32(end) - np.float32(start))
        rows = [*tableau.stages[1:], tableau.weights]
        for i, time in enumerate(stage_times(tableau, start, end)):
            stages.append(Stage(time, rows[i], step, i == len(rows) - 1, guidance[i]))
    return tuple(stages)


def _guidance_of(weights: Sequence[float], per: str) -> list[float]:
    """What multiplies the guidance at every stage of a step.

    Once a step it is evaluated where the step weighs most, and counts there for the whole of it.
    """
    if per == "evaluation":
        return [1.0] * len(weights)
    heaviest = max(range(len(weights)), key=lambda i: (weights[i], i))
    return [1 / weight if i == heaviest else 0.0 for i, weight in enumerate(weights)]


def advance(state: BlockState, velocity: Tensor, stage: Stage) -> None:
    """Takes in the velocity of one evaluation."""
    state.slopes.append(velocity)
    x = state.x
    for slope, weight in zip(state.slopes, stage.row, strict=True):
        if weight:
            x = x.add(slope, alpha=stage.step * weight)
    state.input = x
    if stage.ends_step:
        state.x, state.slopes = x, []
