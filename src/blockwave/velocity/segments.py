# SPDX-License-Identifier: Apache-2.0
"""The network cut where a block has to wait for the next one: before the attention of every look-ahead layer.

Within a segment a block depends on itself and, at look-backward layers, on keys and values of the block before it at
the same evaluation. Between segments it waits until the block after it has come as far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..config import DiTConfig
from ..ops.block_attention import BlockLayout, block_attention
from .dit import DiT
from .modulation import TimeGrid, modulated_norm

KeyValue = tuple[Tensor, Tensor]  # keys and values, each [F, H, D]


@dataclass(frozen=True)
class Segment:
    """Layers ``first`` to ``stop`` (excluded) attend; then the projection of layer ``stop`` is computed, if it exists.

    Attributes:
        looks_back: layers of the segment that need the block before.
        is_first, is_last: whether the segment reads x, and whether it ends in a velocity.
    """

    first: int
    stop: int
    looks_back: tuple[int, ...]
    is_first: bool
    is_last: bool

    @property
    def looks_ahead(self) -> bool:
        """Whether its first layer needs the block after, which has to have finished the segment before."""
        return not self.is_first


def segments_of(config: DiTConfig) -> tuple[Segment, ...]:
    """The segments of one evaluation, in order."""
    cuts = sorted(set(config.look_ahead_layers))
    starts, stops = [0, *cuts], [*cuts, config.num_layers]
    return tuple(
        Segment(first, stop, tuple(i for i in range(first, stop) if config.reach(i)[0]), n == 0, n == len(cuts))
        for n, (first, stop) in enumerate(zip(starts, stops, strict=True))
    )


@dataclass(frozen=True)
class SegmentBatch:
    """The frames that one segment is run on.

    Attributes:
        layouts: reach (back, ahead) -> layout; its outside blocks are those of ``before`` and ``after``.
        cos, sin: [F, 1, D/2], rotary angles.
        grid, rows: modulations, and their row for all frames or int64 [F].
        before: layer -> keys and values of preceding blocks that are not in the batch.
        after: the same of following blocks, at the segment's first layer.
    """

    layouts: Mapping[tuple[int, int], BlockLayout]
    cos: Tensor
    sin: Tensor
    grid: TimeGrid
    rows: int | Tensor
    before: Mapping[int, KeyValue]
    after: KeyValue | None


@dataclass(frozen=True)
class SegmentResult:
    """What a segment leaves.

    Attributes:
        out: the velocity [F, M] of every branch after the last segment, else the state [F, C].
        qkv: projection [F, 3, H, D] of the layer that waits, or None after the last segment.
        kept: layer -> keys and values [F, H, D] that following blocks will ask for.
    """

    out: Tensor
    qkv: Tensor | None
    kept: Mapping[int, KeyValue] = field(default_factory=dict)


def run_segment(dit: DiT, segment: Segment, h: Tensor, qkv: Tensor | None, batch: SegmentBatch) -> SegmentResult:
    """Runs one segment on packed frames.

    Args:
        h: [F, C], the projected input or the state that the segment before left.
        qkv: [F, 3, H, D] from the segment before; None for the first.
    """
    kept: dict[int, KeyValue] = {}
    for index in range(segment.first, segment.stop):
        layer, modulation = dit.layers[index], batch.grid.layer(index, batch.rows)
        if qkv is None:
            qkv = layer.project(h, modulation, batch.cos, batch.sin)
        q, k, v = qkv.unbind(1)
        if index in segment.looks_back:
            kept[index] = (k, v)
        outside = [batch.before.get(index) if layer.look_backward else None, batch.after if layer.look_ahead else None]
        keys = _joined(k, [pair[0] for pair in outside if pair is not None])
        values = _joined(v, [pair[1] for pair in outside if pair is not None])
        layout = batch.layouts[layer.look_backward, layer.look_ahead]
        attended = block_attention(q, keys, values, layout, layer.look_backward, layer.look_ahead).flatten(1)
        h, qkv = layer.complete(h, attended, modulation), None
    if segment.is_last:
        scale, shift = batch.grid.scale_and_shift(batch.rows)
        return SegmentResult(dit.final(modulated_norm(h, scale, shift)), None, kept)
    waiting = dit.layers[segment.stop]
    return SegmentResult(h, waiting.project(h, batch.grid.layer(segment.stop, batch.rows), batch.cos, batch.sin), kept)


def _joined(own: Tensor, outside: list[Tensor]) -> Tensor:
    return torch.cat([own, *outside]) if outside else own
