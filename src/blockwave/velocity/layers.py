# SPDX-License-Identifier: Apache-2.0
"""One transformer layer on packed frames."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu

from ..ops.block_attention import BlockLayout, block_attention
from .modulation import LayerModulation, modulated_norm
from .rotary import rotate_in_place


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
        """h [F, C] -> [F, C]; cos, sin [F, 1, D/2] of every frame's position in its own sequence."""
        y = modulated_norm(h, m.scale_attention, m.shift_attention)
        y = self.out(self.attend(y.to(self.qkv.weight.dtype), layout, cos, sin))
        h = h.addcmul(m.gate_attention, y.to(h.dtype))
        y = modulated_norm(h, m.scale_mlp, m.shift_mlp)
        y = self.down(gelu(self.up(y.to(self.up.weight.dtype)), approximate="tanh"))
        return h.addcmul(m.gate_mlp, y.to(h.dtype))

    def attend(self, y: Tensor, layout: BlockLayout, cos: Tensor, sin: Tensor) -> Tensor:
        """y [F, C] -> concatenated heads [F, H D]."""
        qkv = self.qkv(y).unflatten(-1, (3, self.num_heads, self.head_dim))
        rotate_in_place(qkv[:, :2, : self.rope_heads], cos[:, None], sin[:, None])
        q, k, v = qkv.unbind(1)
        return block_attention(q, k, v, layout, self.look_backward, self.look_ahead).flatten(1)
