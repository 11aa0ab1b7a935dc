# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on time alone: the time embedding and the adaLN-Zero modulations of a whole time grid.

A solve evaluates the velocity at a few times (28 for the defaults), so all modulations are computed once per grid.
adaLN-Zero: Peebles and Xie, 2023, arXiv 2212.09748, section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

SINUSOID_DIM = 256  # time_mlp.0 of the checkpoint has 256 columns
_TIME_SCALE = 1000.0  # SinusPositionEmbedding in transformers: time in [0, 1] counts as 0..1000
_MAX_PERIOD = 10_000.0


def sinusoid(times: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """[R, 256]: sin, then cos, of 1000 t exp(-i ln(1e4) / 127), i = 0..127.

    The product is formed in ``dtype`` in the reference's order: at 1000 t the angle's last bit is 6e-5 in float32,
    more than everything else loses.
    """
    half = SINUSOID_DIM // 2
    steps = torch.arange(half, device=device, dtype=dtype)
    frequencies = torch.exp(steps * -(math.log(_MAX_PERIOD) / (half - 1)))
    angles = _TIME_SCALE * torch.tensor(times, device=device, dtype=dtype)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


@dataclass(frozen=True)
class LayerModulation:
    """Rows for one layer: each field is [C] (one time for all frames) or [F, C] (a time for every frame)."""

    shift_attention: Tensor
    scale_attention: Tensor
    gate_attention: Tensor
    shift_mlp: Tensor
    scale_mlp: Tensor
    gate_mlp: Tensor

    def of(self, span: slice) -> LayerModulation:
        """The rows of some frames."""
        rows = (getattr(self, field.name) for field in fields(self))
        return LayerModulation(*(row if row.ndim == 1 else row[span] for row in rows))


@dataclass(frozen=True)
class TimeGrid:
    """Modulations at R times.

    Attributes:
        times: the R times; ``row`` finds one.
        layers: [num_layers, R, 6, C]: shift, 1 + scale, gate of the attention, then of the MLP.
        final: [R, 2, C]: 1 + scale, shift.
    """

    times: tuple[float, ...]
    layers: Tensor
    final: Tensor

    @classmethod
    def joined(cls, grids: Sequence[TimeGrid]) -> TimeGrid:
        """The rows of several grids one after another; times may repeat."""
        times = tuple(time for grid in grids for time in grid.times)
        layers = torch.cat([grid.layers for grid in grids], 1)
        return cls(times, layers, torch.cat([grid.final for grid in grids]))

    def row(self, time: float) -> int:
        return self.times.index(time)

    def layer(self, index: int, rows: int | Tensor) -> LayerModulation:
        """``rows``: one row for all frames, or int64 [F]."""
        return LayerModulation(*(self.layers[index, :, i][rows] for i in range(6)))

    def scale_and_shift(self, rows: int | Tensor) -> tuple[Tensor, Tensor]:
        return self.final[:, 0][rows], self.final[:, 1][rows]


def modulated_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """LayerNorm(x) * scale + shift without learned affine; x [F, C], scale and shift [C] or [F, C]."""
    eps = 1e-6  # DiTDecoderLayer in transformers
    channels = x.shape[-1:]
    if scale.ndim == 1:
        return torch.nn.functional.layer_norm(x, channels, scale, shift, eps)
    return torch.addcmul(shift, torch.nn.functional.layer_norm(x, channels, eps=eps), scale)
