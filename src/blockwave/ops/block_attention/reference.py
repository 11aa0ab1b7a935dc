# SPDX-License-Identifier: Apache-2.0
"""The definition: dense attention under a mask of block distances, one sequence at a time. Quadratic in memory."""

from __future__ import annotations

import torch
from torch import Tensor

from ...blocks import BlockTable


def attend(q: Tensor, k: Tensor, v: Tensor, table: BlockTable, look_backward: int, look_ahead: int) -> Tensor:
    """Same contract as :func:`blockwave.ops.block_attention.block_attention`."""
    sequence = torch.from_numpy(table.frame_sequence).to(q.device)
    block = torch.from_numpy(table.position[table.frame_block]).to(q.device)
    distance = block[None, :] - block[:, None]
    visible = (distance >= -look_backward) & (distance <= look_ahead) & (sequence[None, :] == sequence[:, None])
    scores = torch.einsum("fhd,ghd->hfg", q, k) / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~visible, float("-inf")).softmax(-1)
    return torch.einsum("hfg,ghd->fhd", weights, v)
