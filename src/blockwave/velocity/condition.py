# SPDX-License-Identifier: Apache-2.0
"""What a solve is conditioned on, computed once: the part of the input projection that does not depend on x or t.

The input of the transformer is a projection of [x | ECAPA of the reference | code embedding | x-vector]. All columns
but x's are constant over a solve, so they enter as rows that are added. The unconditional branch (x-vector zero,
code 0, ECAPA of an all-zero mel of the reference's length) is a single row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..blocks import BlockTable
from ..ops.block_attention import BlockLayout
from .guidance import MIN_GUIDANCE
from .rotary import rotary_table


@dataclass(frozen=True)
class VoiceRows:
    """A voice's part of the input.

    Attributes:
        shared: [1, C], added to every code of the conditional branch.
        null_row: [1, C], the whole constant part of the unconditional branch.
    """

    shared: Tensor
    null_row: Tensor


@dataclass(frozen=True)
class Condition:
    """One request's constants.

    Attributes:
        code_rows: [N, C], the constant part of the input for every code.
        null_row: [1, C], the same for the unconditional branch; None where guidance is off.
        guidance: weight of the guidance.
    """

    code_rows: Tensor
    null_row: Tensor | None
    guidance: float

    def __post_init__(self) -> None:
        if (self.null_row is None) != (self.guidance < MIN_GUIDANCE):
            raise ValueError(f"got guidance {self.guidance} with null_row {self.null_row is not None}")


class PackedConditions:
    """The branches of several requests as one packed batch of blocks.

    x holds the requests' frames one after another, [F, M]. The network runs on the branches' frames in the order of
    the block table, [F', C], F' = F plus the frames of all requests with guidance.

    Args:
        conditions: the requests.
        block_size, repeats: frames per block; frames per code.
        head_dim, theta: of the rotary positions.
    """

    def __init__(
        self, conditions: Sequence[Condition], *, block_size: int, repeats: int, head_dim: int, theta: float
    ) -> None:
        guided = [i for i, condition in enumerate(conditions) if condition.null_row is not None]
        owners = np.array([*range(len(conditions)), *guided])  # request of every branch
        self.num_frames = [repeats * len(condition.code_rows) for condition in conditions]
        table = BlockTable.from_lengths([self.num_frames[i] for i in owners], block_size)
        rows = conditions[0].code_rows
        self.layout = BlockLayout(table, rows.device)
        self.cos, self.sin = rotary_table(table.frame_position, head_dim, theta, rows.dtype, rows.device)

        null_rows = [condition.null_row for condition in conditions if condition.null_row is not None]
        self.constants = torch.cat([*(condition.code_rows for condition in conditions), *null_rows])  # [K, C]

        first_frame = np.cumsum([0, *self.num_frames])
        first_code = first_frame // repeats
        branch, position = table.frame_sequence, table.frame_position
        is_null = branch >= len(conditions)
        code_of = first_code[owners[branch]] + position // repeats
        null_of = first_code[-1] + branch - len(conditions)
        x_of = first_frame[owners[branch]] + position
        self.constant_of = self._index(np.where(is_null, null_of, code_of))
        self.x_of = self._index(x_of)

        place = np.empty((2, first_frame[-1]), np.int64)  # packed frame of every x frame, by branch
        place[is_null.astype(np.int64), x_of] = np.arange(len(x_of))
        self.conditional = self._index(place[0])
        with_guidance = np.repeat([condition.null_row is not None for condition in conditions], self.num_frames)
        self.guided = np.flatnonzero(with_guidance)  # x frames that have a second branch; as an index unless all have
        self.guided_index = None if with_guidance.all() else self._index(self.guided)
        self.unconditional = self._index(place[1, self.guided])
        weights = np.repeat([condition.guidance for condition in conditions], self.num_frames)[self.guided]
        self.guidance = torch.from_numpy(weights[:, None]).to(rows.device, rows.dtype)

    def _index(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(self.constants.device)
