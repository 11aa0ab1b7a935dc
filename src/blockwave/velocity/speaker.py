# SPDX-License-Identifier: Apache-2.0
"""ECAPA-TDNN over a reference mel (Desplanques et al., 2020, arXiv 2005.07143): [1, T, M] -> [1, output_dim].

One reference at a time: nothing is padded, so references of unequal length cannot reach each other.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..config import SpeakerEncoderConfig

_VARIANCE_FLOOR = 1e-12  # AttentiveStatisticsPooling.eps in transformers


def _conv(width_in: int, width_out: int, kernel: int = 1, dilation: int = 1) -> nn.Conv1d:
    return nn.Conv1d(width_in, width_out, kernel, dilation=dilation, padding="same", padding_mode="reflect")


class SERes2Block(nn.Module):
    """Residual block: pointwise, split convolutions that feed each other, pointwise, squeeze and excite."""

    def __init__(self, channels: int, kernel: int, dilation: int, scale: int, squeezed: int) -> None:
        super().__init__()
        width = channels // scale
        self.scale = scale
        self.pre = _conv(channels, channels)
        self.res = nn.ModuleList(_conv(width, width, kernel, dilation) for _ in range(scale - 1))
        self.post = _conv(channels, channels)
        self.squeeze = _conv(channels, squeezed)
        self.excite = _conv(squeezed, channels)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.pre(x).relu().chunk(self.scale, dim=1))
        for i, conv in enumerate(self.res, start=1):
            # The first convolution sees its own part only, the others also what came before.
            parts[i] = conv(parts[i] if i == 1 else parts[i] + parts[i - 1]).relu()
        y = self.post(torch.cat(parts, dim=1)).relu()
        weight = self.excite(self.squeeze(y.mean(2, keepdim=True)).relu()).sigmoid()
        return x + y * weight


class SpeakerEncoder(nn.Module):
    """The checkpoint's reference encoder. Input [B, T, M] of one length, output [B, output_dim]."""

    def __init__(self, config: SpeakerEncoderConfig) -> None:
        super().__init__()
        width, kernels, dilations = config.channels, config.kernel_sizes, config.dilations
        self.stem = _conv(config.mel_dim, width[0], kernels[0], dilations[0])
        self.blocks = nn.ModuleList(
            SERes2Block(width[i], kernels[i], dilations[i], config.res2net_scale, config.se_channels)
            for i in range(1, len(width) - 1)
        )
        self.aggregate = _conv(width[-1], width[-1], kernels[-1], dilations[-1])
        self.attention_in = _conv(3 * width[-1], config.attention_channels)
        self.attention_out = _conv(config.attention_channels, width[-1])
        self.project = _conv(2 * width[-1], config.output_dim)

    def forward(self, mel: Tensor) -> Tensor:
        x = self.stem(mel.transpose(1, 2)).relu()
        collected = []
        for block in self.blocks:
            x = block(x)
            collected.append(x)
        x = self.aggregate(torch.cat(collected, dim=1)).relu()
        uniform = torch.full_like(x[:, :1], 1 / x.shape[2])
        context = (moment.expand_as(x) for moment in _weighted_moments(x, uniform))
        weights = self.attention_out(self.attention_in(torch.cat((x, *context), dim=1)).relu().tanh()).softmax(2)
        pooled = torch.cat(_weighted_moments(x, weights), dim=1)
        return self.project(pooled).flatten(1)


def _weighted_moments(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation over time, [B, C, 1] each; weights sum to 1 over time."""
    mean = (weights * x).sum(2, keepdim=True)
    variance = (weights * (x - mean).square()).sum(2, keepdim=True)
    return mean, variance.clamp(_VARIANCE_FLOOR).sqrt()
