# SPDX-License-Identifier: Apache-2.0
"""Reads the arguments of the Python surface: numbers that may come from anywhere, values for one item or for each."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from torch import Tensor

from ..codes import CodeClock
from ..errors import OptionError

LookAhead = int | str
EXACT = "exact"


def whole_blocks(name: str, num_codes: int | None, clock: CodeClock, default: int) -> int:
    """Blocks in so many codes."""
    if num_codes is None:
        return default
    frames = clock.num_frames(integer(name, num_codes))
    if frames < 1 or frames % clock.block_frames:
        least = math.lcm(clock.block_frames, clock.frames_per_code) // clock.frames_per_code
        raise OptionError(f"{name}: got {num_codes}, expected a multiple of {least} codes, whole blocks")
    return frames // clock.block_frames


def look_ahead_blocks(blocks: LookAhead) -> int:
    if isinstance(blocks, str) or integer("look_ahead", blocks) < 0:
        raise OptionError(f"look_ahead: got {blocks!r}, expected a number of blocks >= 0, or {EXACT!r}")
    return int(blocks)


def integer(name: str, value: Any) -> int:
    if isinstance(value, bool):
        raise OptionError(f"{name}: got {value!r}, expected an integer")
    try:
        return operator.index(value)
    except TypeError:
        raise OptionError(f"{name}: got {value!r}, expected an integer") from None


def spread(name: str, value: Any, count: int, batch: bool) -> list[Any]:
    """One value for every item: a list of as many, or a single one for all."""
    if not isinstance(value, list | tuple | np.ndarray | Tensor):
        return [value] * count
    if isinstance(value, np.ndarray | Tensor) and value.ndim == 0:
        return [value.item()] * count
    if not batch:
        raise OptionError(f"{name}: got {len(value)} values for one sequence of codes, expected a single one")
    if len(value) != count:
        raise OptionError(f"{name}: got {len(value)} values for {count} sequences of codes, expected as many or one")
    return list(value)


def spread_noise(noise: Any, count: int, batch: bool) -> list[Any]:
    if noise is None or not batch:
        return [noise] * count
    if len(noise) != count:
        raise OptionError(f"noise: got {len(noise)} arrays for {count} sequences of codes, expected one for each")
    return list(noise)
