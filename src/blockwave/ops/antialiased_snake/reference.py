# SPDX-License-Identifier: Apache-2.0
"""The definition: zero-stuffing upsampler, SnakeBeta, strided downsampler, each as torch writes it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv1d, conv_transpose1d, pad


def activate(x: Tensor, log_alpha: Tensor, log_beta: Tensor, taps: tuple[float, ...]) -> Tensor:
    """Same contract as :func:`blockwave.ops.antialiased_snake.antialiased_snake`."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    channels, half = x.shape[1], len(taps) // 2
    kernel = torch.tensor(taps, dtype=dtype, device=x.device).expand(channels, 1, -1)
    alpha = log_alpha.to(dtype).exp()[:, None]
    magnitude = 1.0 / (log_beta.to(dtype).exp()[:, None] + 1e-9)

    border = half - 1
    s = pad(x.to(dtype), (border, border), mode="replicate")
    s = 2 * conv_transpose1d(s, kernel, stride=2, groups=channels)
    cropped = 2 * border + half - 1  # the border at the doubled rate, and the delay of the filter
    s = s[..., cropped:-cropped]
    z = s + magnitude * torch.sin(s * alpha) ** 2
    z = pad(z, (border, half), mode="replicate")
    return conv1d(z, kernel, stride=2, groups=channels).to(x.dtype)
