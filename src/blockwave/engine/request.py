# SPDX-License-Identifier: Apache-2.0
"""What the engine is asked for: a flow that many requests share, and the requests themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from torch import Tensor

from ..codes import Codes, check_codes
from ..config import Token2WavConfig
from ..errors import CodesError, OptionError
from ..mel.schedule import time_points
from ..mel.solver import Tableau, evaluation_times, find_solver
from ..voice import Voice

GUIDANCE_PER = ("evaluation", "step")


@dataclass(frozen=True)
class Flow:
    """How a solve runs. Two flows with equal settings are equal and share their time grid.

    Attributes:
        steps: number of time points, >= 2; 10 points are 9 steps.
        sway: warp of the time points, -1 to 1.75, or None.
        solver: "rk4" (Kutta's 3/8 rule), "rk2" (two stages), "midpoint" or "euler".
        guidance_per: "evaluation", or "step": guidance is evaluated once in a step, and counts there for all of it.
        points, tableau, times: derived: time points, method, and all distinct evaluation times.
    """

    steps: int = 10
    sway: float | None = -1.0
    solver: str = "rk4"
    guidance_per: str = "evaluation"
    points: tuple[float, ...] = field(init=False, compare=False, repr=False)
    tableau: Tableau = field(init=False, compare=False, repr=False)
    times: tuple[float, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.steps, bool) and isinstance(self.steps, Integral):
            object.__setattr__(self, "steps", int(self.steps))
        if self.sway is not None and not _is_finite_number(self.sway):
            raise OptionError(f"sway: got {self.sway!r}, expected a number from -1 to 1.75, or None")
        if self.sway is not None:
            object.__setattr__(self, "sway", float(self.sway))
        if self.guidance_per not in GUIDANCE_PER:
            raise OptionError(f"guidance_per: got {self.guidance_per!r}, expected one of {list(GUIDANCE_PER)}")
        object.__setattr__(self, "tableau", find_solver(self.solver))
        object.__setattr__(self, "points", time_points(self.steps, self.sway))
        object.__setattr__(self, "times", evaluation_times(self.tableau, self.points))


@dataclass(frozen=True, eq=False)
class Request:
    """One request, fully checked.

    Attributes:
        codes: checked codes.
        voice: fits the checkpoint.
        noise: float [T, M], T = repeats * N, finite.
        seed: what the noise came from, or None.
        guidance: weight of classifier-free guidance; below 1e-5 one branch only.
    """

    codes: Codes
    voice: Voice
    noise: Tensor
    seed: int | None
    guidance: float

    def __post_init__(self) -> None:
        check_guidance(self.guidance)


def check_guidance(guidance: float) -> float:
    """Raises OptionError unless ``guidance`` is a finite number."""
    if not _is_finite_number(guidance):
        raise OptionError(f"guidance: got {guidance!r}, expected a finite number; 0 turns guidance off")
    return guidance


def _is_finite_number(value: object) -> bool:
    if not isinstance(value, int | float | np.floating | np.integer) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except (OverflowError, TypeError):  # an integer beyond all floats; a complex number
        return False


def check_request(
    codes: Any,
    config: Token2WavConfig,
    max_codes: int | None = None,
    where: str = "codes",
    any_length: bool = False,
) -> Codes:
    """Checks one sequence against a checkpoint: legal ids, and positions for all of its frames.

    Args:
        codes: integers [N]: list, numpy or torch.
        max_codes: keep at most so many codes; the result says how many were cut.
        where: how messages name the sequence.
        any_length: go beyond the checkpoint's max_position_embeddings.

    Raises:
        CodesError: before anything is computed.
    """
    dit = config.dit
    checked = check_codes(codes, dit.num_embeds, config.family, max_codes=max_codes, where=where)
    frames = config.clock.num_frames(len(checked))
    if frames > dit.max_position_embeddings and not any_length:
        raise CodesError(
            f"{where}: got {len(checked)} codes = {frames} mel frames, expected at most max_position_embeddings = "
            f"{dit.max_position_embeddings} frames; set max_duration_s, or ask for any length"
        )
    return checked
