# SPDX-License-Identifier: Apache-2.0
"""Block attention by torch's fused attention on views of the packed frames.

Own-block layers read q, k and v where the fused projection wrote them: the full blocks are a strided view, no mask,
no copy. Neighbour layers gather their keys and values in bounded pieces. Only blocks at an end of their sequence
carry a mask.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .layout import BlockLayout, Edge, Whole

# Blocks gathered at once in neighbour layers on a CPU: bounds the copies to some 20 MB at released size and keeps
# them near the cache. On a GPU one piece is one launch, so everything goes at once.
_CPU_PIECE_BLOCKS = 64


def attend(q: Tensor, k: Tensor, v: Tensor, layout: BlockLayout, look_backward: int, look_ahead: int) -> Tensor:
    """Same contract as :func:`blockwave.ops.block_attention.block_attention`."""
    plan = layout.plan(look_backward, look_ahead)
    parts: list[Tensor] = []
    if plan.whole is not None:
        own_block_only = plan.whole.keys.shape == plan.whole.queries.shape
        parts += [_in_place(q, k, v, layout)] if own_block_only else _gathered(q, k, v, plan.whole)
    if plan.edge is not None:
        parts.append(_masked(q, k, v, plan.edge))
    out = parts[0] if len(parts) == 1 else torch.cat(parts)
    return out if plan.order is None else out.index_select(0, plan.order)


def _in_place(q: Tensor, k: Tensor, v: Tensor, layout: BlockLayout) -> Tensor:
    count, size = layout.table.num_full, layout.table.block_size
    blocks = [x[: count * size].unflatten(0, (count, size)) for x in (q, k, v)]
    return _softmax_attention(blocks[0], blocks[1], blocks[2])


def _gathered(q: Tensor, k: Tensor, v: Tensor, whole: Whole) -> list[Tensor]:
    piece = _CPU_PIECE_BLOCKS if q.device.type == "cpu" else len(whole.queries)
    pieces = zip(whole.queries.split(piece), whole.keys.split(piece), strict=True)
    return [_softmax_attention(_take(q, queries), _take(k, keys), _take(v, keys)) for queries, keys in pieces]


def _masked(q: Tensor, k: Tensor, v: Tensor, edge: Edge) -> Tensor:
    out = _softmax_attention(_take(q, edge.queries), _take(k, edge.keys), _take(v, edge.keys), edge.visible)
    return out.index_select(0, edge.rows)


def _take(x: Tensor, frames: Tensor) -> Tensor:
    """x [F, H, D], frames [m, n] -> [m, n, H, D]."""
    return x.index_select(0, frames.flatten()).unflatten(0, tuple(frames.shape))


def _softmax_attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None) -> Tensor:
    """q [m, S, H, D], k and v [m, K, H, D] -> [m S, H, D]."""
    out = scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=visible)
    return out.transpose(1, 2).flatten(0, 1)
