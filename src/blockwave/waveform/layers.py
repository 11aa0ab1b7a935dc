# SPDX-License-Identifier: Apache-2.0
"""The parts of the vocoder: activation, residual block, upsampling stage. All on [B, C, L]."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d

from ..ops.antialiased_snake import Implementation, antialiased_snake
from .filters import ANTI_ALIAS_TAPS
from .passes import WHOLE, Pass


class Conv(nn.Conv1d):
    """A convolution with an odd kernel; zeros at both ends keep the length.

    Args:
        wide: sums are taken in float64. Meant for the first layer, less than 1 % of the work: what it loses goes
            through all others. With its sums in float32, how a mel was cut moved the wave of the embedded voice by more
            than 1e-6 of full scale; all other layers together move it by 3.6e-7.
    """

    def __init__(
        self, channels: int, out: int, kernel_size: int, dilation: int = 1, bias: bool = True, wide: bool = False
    ) -> None:
        padding = dilation * (kernel_size - 1) // 2
        super().__init__(channels, out, kernel_size, padding=padding, dilation=dilation, bias=bias)
        self.wide = wide

    def forward(self, input: Tensor, padded: bool = True) -> Tensor:
        """[B, C, L] to [B, out, L]; without the zeros, [B, out, L - 2 padding]."""
        x, weight, bias = input, self.weight, self.bias
        if self.wide and x.device.type != "mps":  # which has no float64
            x, weight, bias = x.double(), weight.double(), None if bias is None else bias.double()
        return conv1d(x, weight, bias, padding=self.padding if padded else 0, dilation=self.dilation).to(input.dtype)


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
        self.convs1 = nn.ModuleList(Conv(channels, channels, kernel_size, dilation) for dilation in dilations)
        self.convs2 = nn.ModuleList(Conv(channels, channels, kernel_size) for _ in dilations)
        self.acts = nn.ModuleList(Snake(channels, implementation) for _ in range(2 * len(dilations)))

    def forward(self, x: Tensor, run: Pass = WHOLE) -> Tensor:
        steps = zip(self.convs1, self.convs2, self.acts[::2], self.acts[1::2], strict=True)
        for conv1, conv2, act1, act2 in steps:
            x = run.join(run(conv2, run(act2, run(conv1, run(act1, x)))), x)
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

    def forward(self, x: Tensor, run: Pass = WHOLE) -> Tensor:
        x = run(self.up, x)
        total = self.blocks[0](x, run)
        for block in self.blocks[1:]:
            total = run.join(total, block(x, run))
        return total.div_(len(self.blocks))
