# SPDX-License-Identifier: Apache-2.0
"""What a stream with a look-ahead of so many blocks is, written once more, block by block and without the engine."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

from blockwave.engine import Flow
from blockwave.mel.solver import integrate
from blockwave.velocity import Condition, DiT
from blockwave.velocity.guidance import guide
from blockwave.velocity.modulation import LayerModulation, TimeGrid, modulated_norm
from blockwave.velocity.rotary import rotary_table

KeyValue = tuple[Tensor, Tensor]
Kept = dict[tuple[int, int, int], KeyValue]  # (branch, evaluation, layer): of the last block that is final


@torch.inference_mode()
def look_ahead_mel(
    dit: DiT, condition: Condition, noise: Tensor, flow: Flow, first_blocks: int, chunk_blocks: int, look_ahead: int
) -> Tensor:
    """The mel [T, M]: every emission is solved together with ``look_ahead`` blocks beyond it, which are then forgotten.

    Of an emission only keys and values of its last block stay, at every evaluation, as they were when it was solved.
    """
    size, repeats = dit.config.block_size, dit.config.repeats
    constants = [condition.code_rows.repeat_interleave(repeats, 0)]
    if condition.null_row is not None:
        constants.append(condition.null_row.expand(len(noise), -1))
    mels, start, num_blocks = [], 0, -(-len(noise) // size)
    kept: Kept = {}
    while start < num_blocks:
        end = min(start + (chunk_blocks if start else first_blocks), num_blocks)
        frames = slice(start * size, min(end + look_ahead, num_blocks) * size)
        velocity = _Velocity(dit, dit.time_grid(flow.times), condition.guidance, start, end)
        velocity.constants, velocity.before = [rows[frames] for rows in constants], kept
        x = integrate(velocity, noise[frames], flow.points, flow.tableau)
        mels.append(x[: (end - start) * size])
        start, kept = end, velocity.kept
    return torch.cat(mels)


class _Velocity:
    """Evaluations of the blocks from ``start`` on; keys and values of the block before ``end`` stay."""

    constants: list[Tensor]  # of every branch, [F, C]
    before: Kept

    def __init__(self, dit: DiT, grid: TimeGrid, guidance: float, start: int, end: int) -> None:
        self.dit, self.grid, self.guidance, self.start, self.end = dit, grid, guidance, start, end
        self.evaluations, self.kept = itertools.count(), Kept()

    def __call__(self, x: Tensor, time: float) -> Tensor:
        dit, evaluation, row, out = self.dit, next(self.evaluations), self.grid.row(time), []
        for branch, rows in enumerate(self.constants):
            h = linear(x, dit.input.weight[:, : dit.config.mel_dim]) + rows
            for index in range(dit.config.num_layers):
                place = (branch, evaluation, index)
                h, self.kept[place] = self._layer(index, h, self.grid.layer(index, row), self.before.get(place))
            scale, shift = self.grid.scale_and_shift(row)
            out.append(dit.final(modulated_norm(h, scale, shift)))
        return guide(out[0], out[1], self.guidance) if len(out) == 2 else out[0]

    def _layer(
        self, index: int, h: Tensor, modulation: LayerModulation, before: KeyValue | None
    ) -> tuple[Tensor, KeyValue]:
        """The new state, and keys and values of block ``end - 1``."""
        c, layer = self.dit.config, self.dit.layers[index]
        positions = self.start * c.block_size + np.arange(len(h))
        cos, sin = rotary_table(positions, c.head_dim, c.rope_theta, h.dtype, h.device)
        q, k, v = layer.project(h, modulation, cos, sin).unbind(1)
        queries, keys, values = (part.split(c.block_size) for part in (q, k, v))
        attended = []
        for block, query in enumerate(queries):
            seen = range(max(0, block - layer.look_backward), min(len(keys), block + layer.look_ahead + 1))
            key, value = ([part[i] for i in seen] for part in (keys, values))
            if block == 0 and layer.look_backward and before is not None:
                key, value = [before[0], *key], [before[1], *value]
            parts = (part.transpose(0, 1)[None] for part in (query, torch.cat(key), torch.cat(value)))
            attended.append(scaled_dot_product_attention(*parts)[0].transpose(0, 1))
        last = self.end - self.start - 1
        return layer.complete(h, torch.cat(attended).flatten(1), modulation), (keys[last], values[last])
