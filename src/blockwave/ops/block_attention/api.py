# SPDX-License-Identifier: Apache-2.0
"""The contract of block attention, and its form for everybody's tensors."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ...blocks import BlockTable
from ...errors import OptionError
from . import reference, torch_sdpa
from .layout import BlockLayout

Implementation = Literal["torch", "reference"]


def block_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    layout: BlockLayout,
    look_backward: int = 0,
    look_ahead: int = 0,
    implementation: Implementation = "torch",
) -> Tensor:
    """Softmax attention in which block i sees blocks i - look_backward .. i + look_ahead of its own sequence.

    Args:
        q, k, v: [F, H, D] packed frames in the order of ``layout``; any strides with D contiguous, so that slices of
            a fused projection [F, 3, H, D] go in without a copy. Floating point, one dtype. Values must be finite.
        layout: the batch's blocks on the device of ``q``.
        look_backward, look_ahead: blocks seen on either side, >= 0.
        implementation: "torch" (fused attention on views) or "reference" (dense, the definition).

    Returns:
        [F, H, D], scale 1/sqrt(D), same dtype. Differentiable.
    """
    if implementation == "torch":
        return torch_sdpa.attend(q, k, v, layout, look_backward, look_ahead)
    if implementation == "reference":
        return reference.attend(q, k, v, layout.table, look_backward, look_ahead)
    raise OptionError(f"implementation: got {implementation!r}, expected 'torch' or 'reference'")


def block_sparse_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    block_size: int,
    look_backward: int = 0,
    look_ahead: int = 0,
) -> Tensor:
    """Block-sparse attention on ordinary [B, H, T, D] tensors.

    Frame t belongs to block t // block_size; the last block may be partial. Block i attends to blocks
    i - look_backward .. i + look_ahead where they exist. Equal to dense attention under that mask, without building
    it: memory is linear in T.

    Args:
        q, k, v: [B, H, T, D], floating point, one shape, dtype and device; any strides.
        block_size: frames per block, >= 1.
        look_backward, look_ahead: blocks seen on either side, >= 0.

    Returns:
        [B, H, T, D], scale 1/sqrt(D), same dtype. Differentiable.

    Raises:
        OptionError: shapes, dtypes or devices that differ, or a number outside its range.
    """
    if q.ndim != 4 or q.shape != k.shape or q.shape != v.shape:
        shapes = [list(x.shape) for x in (q, k, v)]
        raise OptionError(f"block_sparse_attention: got shapes {shapes}, expected three equal shapes [B, H, T, D]")
    if not q.dtype == k.dtype == v.dtype or not q.device == k.device == v.device or not q.is_floating_point():
        got = [(str(x.dtype), str(x.device)) for x in (q, k, v)]
        raise OptionError(f"block_sparse_attention: got {got}, expected one floating-point dtype on one device")
    for name, value, minimum in (
        ("block_size", block_size, 1),
        ("look_backward", look_backward, 0),
        ("look_ahead", look_ahead, 0),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise OptionError(f"block_sparse_attention: got {name} {value!r}, expected an integer >= {minimum}")
    batch, _, frames, _ = q.shape
    if batch == 0 or frames == 0:
        return torch.empty_like(q)
    table = BlockTable.from_lengths([frames] * batch, block_size)
    packed = torch.from_numpy(table.frame_sequence * frames + table.frame_position).to(q.device)
    flat = [x.transpose(1, 2).flatten(0, 1) for x in (q, k, v)]
    is_natural = batch == 1 or frames % block_size == 0
    rows = flat if is_natural else [x.index_select(0, packed) for x in flat]
    out = block_attention(rows[0], rows[1], rows[2], BlockLayout(table, q.device), look_backward, look_ahead)
    if not is_natural:
        out = out.index_select(0, packed.argsort())
    return out.unflatten(0, (batch, frames)).transpose(1, 2)
