# SPDX-License-Identifier: Apache-2.0
"""How many mel frames on either side a sample of the vocoder depends on: interval arithmetic through its layers."""

from __future__ import annotations

from typing import NamedTuple

from ..config import VocoderConfig
from .bigvgan import POST_KERNEL_SIZE, PRE_KERNEL_SIZE
from .filters import ANTI_ALIAS_TAPS


class Reach(NamedTuple):
    """Mel frames before and after a frame that its own samples depend on."""

    left: int
    right: int


class _Interval(NamedTuple):
    """Positions first .. last of a signal, both included."""

    first: int
    last: int

    def before_conv(self, kernel_size: int, dilation: int = 1) -> _Interval:
        half = dilation * (kernel_size - 1) // 2
        return _Interval(self.first - half, self.last + half)

    def before_snake(self) -> _Interval:
        # The two sums of antialiased_snake's contract, solved for the indices that they read.
        half = len(ANTI_ALIAS_TAPS) // 2
        doubled = _Interval(2 * self.first - (half - 1), 2 * self.last + half)
        return doubled.before_transposed_conv(2 * half, 2, half - 1)

    def before_transposed_conv(self, kernel_size: int, rate: int, padding: int) -> _Interval:
        # Output m reads inputs j with 0 <= m + padding - rate * j < kernel_size.
        return _Interval(-((kernel_size - 1 - self.first - padding) // rate), (self.last + padding) // rate)


def receptive_field(config: VocoderConfig) -> Reach:
    """The exact receptive field of one frame's samples, e.g. (34, 34) for the released Qwen2.5-Omni.

    A window with this many true frames beyond what it keeps gives the samples of one pass: whatever a layer would
    read beyond the window's edge comes, by the same arithmetic, from a frame beyond it.
    """
    interval = _Interval(0, config.samples_per_frame - 1).before_conv(POST_KERNEL_SIZE).before_snake()
    for rate, kernel_size in zip(config.upsample_rates[::-1], config.upsample_kernel_sizes[::-1], strict=True):
        paths = [
            _before_block(interval, block_kernel_size, dilations)
            for block_kernel_size, dilations in zip(
                config.resblock_kernel_sizes, config.resblock_dilations, strict=True
            )
        ]
        interval = _Interval(min(path.first for path in paths), max(path.last for path in paths))
        interval = interval.before_transposed_conv(kernel_size, rate, (kernel_size - rate) // 2)
    interval = interval.before_conv(PRE_KERNEL_SIZE)
    return Reach(-interval.first, interval.last)


def _before_block(interval: _Interval, kernel_size: int, dilations: tuple[int, ...]) -> _Interval:
    # The residual path reads the interval itself, which lies inside what the convolutions read.
    for dilation in reversed(dilations):
        interval = interval.before_conv(kernel_size).before_snake().before_conv(kernel_size, dilation).before_snake()
    return interval
