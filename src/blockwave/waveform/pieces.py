# SPDX-License-Identifier: Apache-2.0
"""The vocoder's layers on the next piece of each signal.

A layer puts what it kept before its new input, gives every output that is now determined, and keeps what later ones
still read. Nothing is computed twice but in the activation, which reads 2 x 5 samples again. A signal whose layers look
further ahead runs behind; where two signals meet, the one that is ahead waits.

Real ends are those of the offline layers: a convolution keeps its padding's zeros before the first input and appends
them to the last; the activation keeps its operator's own border at either real end and drops it at every other.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import conv_transpose1d, pad

from .filters import ANTI_ALIAS_TAPS
from .layers import Conv, Snake

# Output n of antialiased_snake reads inputs n - 5 .. n + 5: its two sums with 12 taps each, solved for the indices.
SNAKE_CONTEXT = (len(ANTI_ALIAS_TAPS) - 1) // 2


class PiecePass:
    """A :class:`blockwave.waveform.passes.Pass` over one piece of a stream, or of several that stand at one point.

    Args:
        held: what the layers kept, each [B, C, w], in the order in which they run; None at the start of the sound.
        final: the sound ends with this piece.

    Attributes:
        kept: what they keep now, in the same order. A piece changes nothing of ``held``.
    """

    def __init__(self, held: Iterator[Tensor] | None, final: bool) -> None:
        self._held, self._final = held, final
        self.kept: list[Tensor] = []

    def __call__(self, layer: nn.Module, x: Tensor) -> Tensor:
        if isinstance(layer, Snake):
            return self._snake(layer, x)
        if isinstance(layer, nn.ConvTranspose1d):
            return self._transposed_conv(layer, x)
        if isinstance(layer, Conv):
            return self._conv(layer, x)
        raise TypeError(f"layer: got {type(layer).__name__}, expected Snake, ConvTranspose1d or Conv")

    def join(self, a: Tensor, b: Tensor) -> Tensor:
        held_a, held_b = self._take(a, a.shape[1], 0), self._take(b, b.shape[1], 0)
        # Which of the two is ahead never changes, so the other has nothing that waits.
        a_is_ahead = held_a.shape[-1] > 0 or (held_b.shape[-1] == 0 and a.shape[-1] > b.shape[-1])
        late, early, held = (b, a, held_a) if a_is_ahead else (a, b, held_b)
        cut = min(late.shape[-1], held.shape[-1])
        taken = late.shape[-1] - cut
        late[..., :cut].add_(held[..., :cut])
        late[..., cut:].add_(early[..., :taken])
        waiting = torch.cat((held[..., cut:], early[..., taken:]), -1)
        for side in (a, b):
            self._keep(waiting if side is early else waiting[..., :0])
        return late

    def _take(self, x: Tensor, channels: int, width: int) -> Tensor:
        """What the layer kept; at the start of the sound zeros [B, channels, width]."""
        return x.new_zeros(len(x), channels, width) if self._held is None else next(self._held)

    def _keep(self, x: Tensor) -> None:
        self.kept.append(x.clone())  # not a view, which would hold the whole signal

    def _conv(self, layer: Conv, x: Tensor) -> Tensor:
        padding = layer.dilation[0] * (layer.kernel_size[0] - 1) // 2
        window = torch.cat((self._take(x, layer.in_channels, padding), x), -1)
        if self._final:
            window = pad(window, (0, padding))
        ready = max(0, window.shape[-1] - 2 * padding)
        self._keep(window[..., ready:])
        if ready == 0:
            return x.new_empty(len(x), layer.out_channels, 0)
        return layer(window, padded=False)

    def _snake(self, layer: Snake, x: Tensor) -> Tensor:
        held = self._take(x, x.shape[1], 0)
        window = torch.cat((held, x), -1)
        # Up to its first 5 samples a window begins at the start of the sound; from then on 5 given outputs are in it.
        given = max(0, held.shape[-1] - SNAKE_CONTEXT)
        ready = window.shape[-1] - (0 if self._final else SNAKE_CONTEXT)
        self._keep(window[..., max(0, ready - SNAKE_CONTEXT) :])
        return layer(window)[..., given:ready] if ready > given else window[..., :0]

    def _transposed_conv(self, layer: nn.ConvTranspose1d, x: Tensor) -> Tensor:
        rate, padding = layer.stride[0], (layer.kernel_size[0] - layer.stride[0]) // 2
        overlap = layer.kernel_size[0] - rate
        # Kept are the sums of inputs so far where more will be added, behind one zero for every output that has not
        # come and lies in the padding.
        held = self._take(x, layer.out_channels, padding + overlap)
        to_drop = held.shape[-1] - overlap
        ready = rate * x.shape[-1]
        if ready:
            out = conv_transpose1d(x, layer.weight, stride=rate)
            out[..., :overlap].add_(held[..., to_drop:])
        else:
            out = held[..., to_drop:]
        drop = min(to_drop, ready)
        self._keep(pad(out[..., ready:], (to_drop - drop, 0)))
        out = out[..., to_drop : ready + overlap - padding] if self._final else out[..., drop:ready]
        return out if layer.bias is None else out + layer.bias[:, None]
