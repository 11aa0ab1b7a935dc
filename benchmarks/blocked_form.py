# SPDX-License-Identifier: Apache-2.0
"""The published block-sparse form, written anew to measure against: vLLM-Omni pull request 7975.

q, k and v are reshaped to blocks, neighbours are shifted copies that are concatenated along the keys, and attention
runs on five axes. Everything else is the transformers model: conditions, time embedding and modulations are computed
at every evaluation, as the public code does.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention


def evaluate(dit, x: Tensor, codes: Tensor, reference: Tensor, xvector: Tensor, time: Tensor) -> Tensor:
    """Both branches of one evaluation, [2B, T, M], with the modules of a transformers Token2Wav DiT."""
    frames, size = x.shape[1], dit.block_size
    embedded = dit.time_embed(time.repeat(2 * len(x)))
    h = dit.input_embed(
        x,
        xvector[:, None].expand(-1, frames, -1),
        reference,
        dit.text_embed(codes),
        code_embed_uncond=dit.text_embed(codes, drop_code=True),
        apply_cfg=True,
    )
    count = -(-frames // size)
    h = pad(h, (0, 0, 0, count * size - frames))
    cos, sin = dit.rotary_embed(h, torch.arange(count * size, device=h.device)[None])
    real = (torch.arange(count * size, device=h.device) < frames).view(1, 1, count, 1, size)
    masks = {}
    for block in dit.transformer_blocks:
        back, ahead = block.look_backward_block, block.look_ahead_block
        if (back, ahead) not in masks:
            masks[back, ahead] = with_neighbours(real.transpose(-1, -2), back, ahead).transpose(-1, -2)
        y, gate, shift, scale, mlp_gate = block.attn_norm(h, emb=embedded)
        y = _attention(block.attn, y, cos, sin, (count, size), (back, ahead), masks[back, ahead])
        h = h + gate[:, None] * y
        h = h + mlp_gate[:, None] * block.ff(block.ff_norm(h) * (1 + scale[:, None]) + shift[:, None])
    return dit.proj_out(dit.norm_out(h, embedded))[:, :frames]


def _attention(attention, y: Tensor, cos: Tensor, sin: Tensor, grid, reach, mask: Tensor) -> Tensor:
    heads = [
        project(y).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
        for project in (attention.to_q, attention.to_k, attention.to_v)
    ]
    q, k = (torch.cat((_rotate(part[:, :1], cos, sin), part[:, 1:]), 1) for part in heads[:2])
    return attention.to_out[0](attend(q, k, heads[2], grid, reach, mask))


def attend(q: Tensor, k: Tensor, v: Tensor, grid: tuple[int, int], reach: tuple[int, int], mask: Tensor) -> Tensor:
    """q, k, v [B, H, n, D] whose n frames are a ``grid`` of (blocks, S) -> [B, n, H D]."""
    q, k, v = (part.unflatten(2, grid) for part in (q, k, v))  # [B, H, blocks, S, D]
    out = scaled_dot_product_attention(q, with_neighbours(k, *reach), with_neighbours(v, *reach), attn_mask=mask)
    return out.flatten(2, 3).transpose(1, 2).flatten(2)


def with_neighbours(x: Tensor, back: int, ahead: int) -> Tensor:
    """x [..., blocks, S, D] -> [..., blocks, (back + 1 + ahead) S, D]; zeros beyond the ends."""
    count = x.shape[-3]
    shifted = []
    for offset in range(-back, ahead + 1):
        source = x[..., max(offset, 0) : count + min(offset, 0), :, :]
        shifted.append(pad(source, (0, 0, 0, 0, max(-offset, 0), max(offset, 0))))
    return shifted[0] if len(shifted) == 1 else torch.cat(shifted, -2)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x = torch.cat((x[..., 0::2], x[..., 1::2]), -1)
    first, second = x.chunk(2, -1)
    return x * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]
