# SPDX-License-Identifier: Apache-2.0
"""One transformer layer on packed frames."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from ..ops.block_attention import BlockLayout, block_attention
from .modulation import LayerModulation, modulated_norm
from .rotary import rotate_in_place

_CPU_PIECE_FRAMES = 2048


class DiTLayer(nn.Module):
    """Attention over blocks, then an MLP, each modulated and gated by time.

    The state h stays in the precision of the modulations; matrix products run in the precision of their weights.

    Args:
        hidden_size, num_heads, head_dim, mlp_size: widths.
        rope_heads: how many heads, counted from the first, rotary positions turn.
        look_backward, look_ahead: blocks that attention sees on either side.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        head_dim: int,
        mlp_size: int,
        rope_heads: int,
        look_backward: int,
        look_ahead: int,
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.rope_heads = num_heads, head_dim, rope_heads
        self.look_backward, self.look_ahead = look_backward, look_ahead
        self.modulation = nn.Linear(hidden_size, 6 * hidden_size)
        self.qkv = nn.Linear(hidden_size, 3 * num_heads * head_dim)
        self.out = nn.Linear(num_heads * head_dim, hidden_size)
        self.up = nn.Linear(hidden_size, mlp_size)
        self.down = nn.Linear(mlp_size, hidden_size)

    def products(self) -> tuple[nn.Linear, ...]:
        """The matrix products that may run in half precision."""
        return self.qkv, self.out, self.up, self.down

    def forward(self, h: Tensor, m: LayerModulation, layout: BlockLayout, cos: Tensor, sin: Tensor) -> Tensor:
        """h [F, C] -> [F, C]; cos, sin [F, 1, D/2] of every frame's position in its own sequence.

        Where no gradient is recorded the result takes the place of h.
        """
        return self.complete(h, self._attend(self.project(h, m, cos, sin), layout), m)

    def _attend(self, qkv: Tensor, layout: BlockLayout) -> Tensor:
        q, k, v = qkv.unbind(1)
        return block_attention(q, k, v, layout, self.look_backward, self.look_ahead).flatten(1)

    def project(self, h: Tensor, m: LayerModulation, cos: Tensor, sin: Tensor) -> Tensor:
        """h [F, C] -> q, k and v as one tensor [F, 3, H, D], with rotary positions."""
        y = modulated_norm(h, m.scale_attention, m.shift_attention).to(self.qkv.weight.dtype)
        qkv = self.qkv(y).unflatten(-1, (3, self.num_heads, self.head_dim))
        rotate_in_place(qkv[:, :2, : self.rope_heads], cos[:, None], sin[:, None])
        return qkv

    def complete(self, h: Tensor, attended: Tensor, m: LayerModulation) -> Tensor:
        """What follows the attention: h [F, C] and concatenated heads [F, H D] -> [F, C].

        Where no gradient is recorded it works in place, on a CPU in pieces: the MLP's wide states stay small and near
        the cache.
        """
        if torch.is_grad_enabled():
            return self._complete(h, attended, m, Tensor.addcmul)
        piece = _CPU_PIECE_FRAMES if h.device.type == "cpu" else len(h)
        for start in range(0, len(h), piece):
            span = slice(start, start + piece)
            self._complete(h[span], attended[span], m.of(span), Tensor.addcmul_)
        return h

    def _complete(self, h: Tensor, attended: Tensor, m: LayerModulation, add: Callable[..., Tensor]) -> Tensor:
        h = add(h, m.gate_attention, self.out(attended).to(h.dtype))
        y = modulated_norm(h, m.scale_mlp, m.shift_mlp).to(self.up.weight.dtype)
        y = self.down(gelu(self.up(y), approximate="tanh"))
        return add(h, m.gate_mlp, y.to(h.dtype))
