# SPDX-License-Identifier: Apache-2.0
"""The parts of the vocoder: activation, residual block, upsampling stage. All on [B, C, L]."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..ops.antialiased_snake import Implementation, antialiased_snake
from .filters import ANTI_ALIAS_TAPS


class Snake(nn.Module):
    """Anti-aliased SnakeBeta with one frequency and one magnitude per channel, both stored as logarithms."""

    def __init__(self, channels: int, implementation: Implementation | None) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.zeros(channels))
        self.log_beta = nn.Parameter(torch.zeros(channels))
        self.implementation: Implementation | None = implementation

    def forward(self, x: Tensor) -> Tensor:
        return antialiased_snake(x, self.log_alpha, self.log_beta, ANTI_ALIAS_TAPS, self.implementation)


class AMPBlock(nn.Module):
    """Anti-aliased multi-periodicity block: one residual step per dilation (Lee et al., 2023, arXiv 2206.04658)."""

    def __init__(
        self, channels: int, kernel_size: int, dilations: tuple[int, ...], implementation: Implementation | None
    ) -> None:
        super().__init__()

        def conv(dilation: int) -> nn.Conv1d:
            padding = dilation * (kernel_size - 1) // 2
            return nn.Conv1d(channels, channels, kernel_size, dilation=dilation, padding=padding)

        self.convs1 = nn.ModuleList(conv(dilation) for dilation in dilations)
        self.convs2 = nn.ModuleList(conv(1) for _ in dilations)
        self.acts = nn.ModuleList(Snake(channels, implementation) for _ in range(2 * len(dilations)))

    def forward(self, x: Tensor) -> Tensor:
        steps = zip(self.convs1, self.convs2, self.acts[::2], self.acts[1::2], strict=True)
        for conv1, conv2, act1, act2 in steps:
            x = conv2(act2(conv1(act1(x)))).add_(x)  # in place: fresh memory of this size costs as much as the sum
        return x


class Stage(nn.Module):
    """Upsamples by ``rate`` and halves the channels; the mean of parallel blocks with different kernels follows."""

    def __init__(
        self,
        channels: int,
        rate: int,
        kernel_size: int,
        block_kernel_sizes: tuple[int, ...],
        block_dilations: tuple[tuple[int, ...], ...],
        implementation: Implementation | None,
    ) -> None:
        super().__init__()
        out = channels // 2
        self.up = nn.ConvTranspose1d(channels, out, kernel_size, rate, padding=(kernel_size - rate) // 2)
        shapes = zip(block_kernel_sizes, block_dilations, strict=True)
        self.blocks = nn.ModuleList(AMPBlock(out, size, dilations, implementation) for size, dilations in shapes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        total = self.blocks[0](x)
        for block in self.blocks[1:]:
            total += block(x)
        return total.div_(len(self.blocks))
