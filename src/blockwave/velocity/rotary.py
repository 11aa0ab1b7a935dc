# SPDX-License-Identifier: Apache-2.0
"""Rotary positions (Su et al., 2021, arXiv 2104.09864), on the first head or on all of them.

Checkpoints pair channels (2i, 2i + 1). Projection rows are reordered at load to (0, 2, 4, ..., 1, 3, 5, ...), which
leaves q.k unchanged and makes the two halves of a pair contiguous, so rotation works on the halves of a head.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def rotary_table(
    positions: np.ndarray, head_dim: int, theta: float, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """cos and sin [F, 1, D/2] of the angles position * theta^(-2i/D), taken in float64.

    float32 angles lose precision with the position (1.6e-5 of the mel's maximum at frame 360,000).
    """
    frequencies = theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    angles = torch.from_numpy(positions.astype(np.float64)[:, None, None] * frequencies)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def rotate_in_place(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Turns x [F, ..., D] by the angles of ``rotary_table``, in half-split channel order, writing into x."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]  # not chunk, whose results autograd does not let be written to
    turned = (first * cos - second * sin, second * cos + first * sin)
    first.copy_(turned[0])
    second.copy_(turned[1])
