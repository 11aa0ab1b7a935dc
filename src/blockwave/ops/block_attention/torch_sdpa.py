# SPDX-License-Identifier: Apache-2.0
"""Block attention by torch's fused attention on views of the packed frames.

Own-block layers read q, k and v where the fused projection wrote them: the full blocks are a strided view, no mask,
no copy. Neighbour layers gather their keys and values in bounded pieces. Blocks at an end of their sequence carry a
mask only where a batch holds many kinds of them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .layout import BlockLayout, Ends, Group

# Blocks gathered at once in neighbour layers on a CPU: bounds the copies to some 20 MB at released size and keeps
# them near the cache. On a GPU one piece is one launch, so everything goes at once.
_CPU_PIECE_BLOCKS = 64


def attend(q: Tensor, k: Tensor, v: Tensor, layout: BlockLayout, look_backward: int, look_ahead: int) -> Tensor:
    """Same contract as :func:`blockwave.ops.block_attention.block_attention`."""
    plan = layout.plan(look_backward, look_ahead)
    if len(plan.groups) == 1 and plan.ends is None and plan.groups[0].first == 0:
        return _in_place(q, k, v, plan.groups[0], 0)
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    for group in plan.groups:
        if group.first is not None:
            out.narrow(0, group.first, group.queries.numel()).copy_(_in_place(q, k, v, group, group.first))
            continue
        piece = _CPU_PIECE_BLOCKS if q.device.type == "cpu" else len(group.queries)
        for queries, keys in zip(group.queries.split(piece), group.keys.split(piece), strict=True):
            out.index_copy_(0, queries.flatten(), _softmax_attention(_take(q, queries), _take(k, keys), _take(v, keys)))
    if plan.ends is not None:
        out.index_copy_(0, plan.ends.frames, _masked(q, k, v, plan.ends))
    return out


def _in_place(q: Tensor, k: Tensor, v: Tensor, group: Group, first: int) -> Tensor:
    shape = tuple(group.queries.shape)
    blocks = [x[first : first + group.queries.numel()].unflatten(0, shape) for x in (q, k, v)]
    return _softmax_attention(blocks[0], blocks[1], blocks[2])


def _masked(q: Tensor, k: Tensor, v: Tensor, ends: Ends) -> Tensor:
    out = _softmax_attention(_take(q, ends.queries), _take(k, ends.keys), _take(v, ends.keys), ends.visible)
    return out.index_select(0, ends.rows)


def _take(x: Tensor, frames: Tensor) -> Tensor:
    """x [F, H, D], frames [m, n] -> [m, n, H, D]."""
    return x.index_select(0, frames.flatten()).unflatten(0, tuple(frames.shape))


def _softmax_attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None) -> Tensor:
    """q [m, S, H, D], k and v [m, K, H, D] -> [m S, H, D]."""
    out = scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=visible)
    return out.transpose(1, 2).flatten(0, 1)
