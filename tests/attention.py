# SPDX-License-Identifier: Apache-2.0
"""Dense attention under a mask of block distances: in PyTorch's own operators, and in float64 from the formula."""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention

from blockwave.blocks import BlockTable
from blockwave.ops.block_attention import BlockLayout, block_attention

BLOCK = 24
REACHES = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 1))
SOUND = 2.0  # times the error of plain PyTorch


def fused(frames, heads=2, width=64, dtype=torch.float32, seed=0):
    """q, k, v [F, H, D] as slices of one tensor [F, 3, H, D], as the fused projection leaves them."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(frames, 3, heads, width, generator=generator, dtype=torch.float64).to(dtype).unbind(1)


def dense(q, k, v, block, back, ahead):
    """PyTorch's attention of one sequence [T, H, D] under the mask of block distances."""
    of = torch.arange(len(q)) // block
    distance = of[None, :] - of[:, None]
    mask = (distance >= -back) & (distance <= ahead)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v, attn_mask=mask)[0].transpose(0, 1)


def exact(q, k, v, block, back, ahead):
    """The same in float64, from the formula."""
    of = torch.arange(len(q)) // block
    distance = of[None, :] - of[:, None]
    q, k, v = (x.double() for x in (q, k, v))
    scores = torch.einsum("thd,uhd->htu", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill((distance < -back) | (distance > ahead), -torch.inf)
    return torch.einsum("htu,uhd->thd", scores.softmax(-1), v)


def packed(table, parts):
    """[T_i, H, D] of every sequence -> [F, H, D] in packed order."""
    starts = torch.tensor([0, *(len(part) for part in parts)]).cumsum(0)[:-1]
    order = starts[torch.from_numpy(table.frame_sequence)] + torch.from_numpy(table.frame_position)
    return torch.cat(parts)[order]


def unpacked(table, out):
    sequence, position = torch.from_numpy(table.frame_sequence), torch.from_numpy(table.frame_position)
    parts = []
    for i in range(int(sequence.max()) + 1):
        own = sequence == i
        parts.append(out[own][position[own].argsort()])
    return parts


def alone(q, k, v, back, ahead, block=BLOCK, **options):
    layout = BlockLayout(BlockTable.from_lengths([len(q)], block))
    return block_attention(q, k, v, layout, back, ahead, **options)


def together(qkvs, back, ahead, block=BLOCK):
    table = BlockTable.from_lengths([len(q) for q, _, _ in qkvs], block)
    q, k, v = (packed(table, parts) for parts in zip(*qkvs, strict=True))
    return unpacked(table, block_attention(q, k, v, BlockLayout(table), back, ahead))
