# SPDX-License-Identifier: Apache-2.0
"""Small vocoders with random weights that keep the variance, so that every part of the wave matters."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from blockwave.config import VocoderConfig
from blockwave.waveform import BigVGAN
from blockwave.waveform.layers import Snake

_DILATIONS = (1, 3, 5)

CONFIGS = {
    # The released stages and kernels with few channels.
    "released": VocoderConfig(80, 64, (3, 7, 11), (_DILATIONS,) * 3, (5, 3, 2, 2, 2, 2), (11, 7, 4, 4, 4, 4)),
    # Four stages, one small kernel: a voice for small devices.
    "small": VocoderConfig(80, 48, (3,), (_DILATIONS,), (5, 4, 4, 3), (11, 8, 8, 7)),
    # One stage; unusual kernels, dilations out of order, a rate equal to its kernel.
    "odd": VocoderConfig(7, 6, (5, 1), ((2, 1, 4), (1, 1, 1)), (3,), (3,)),
}

RELEASED = VocoderConfig(80, 1536, (3, 7, 11), (_DILATIONS,) * 3, (5, 3, 2, 2, 2, 2), (11, 7, 4, 4, 4, 4))


def random_mel(num_frames: int, mel_dim: int, seed: int = 0, batch: int = 1) -> Tensor:
    """Natural-log mels [B, T, M] that mostly lie inside the front end's range and now and then beyond either end."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, num_frames, mel_dim, generator=generator) * 3 - 4


def random_vocoder(config: VocoderConfig, seed: int = 0, peak: float = 0.5) -> BigVGAN:
    """float32, in evaluation mode; the largest sample of a random mel is ``peak``."""
    generator = torch.Generator().manual_seed(seed)
    model = BigVGAN(config).eval().requires_grad_(False)

    def fill(tensor: Tensor, std: float) -> None:
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * std)

    for module in model.modules():
        if isinstance(module, Snake):
            fill(module.log_alpha, 0.3)
            fill(module.log_beta, 0.3)
        elif isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
            fan_in = module.in_channels * module.kernel_size[0] / module.stride[0]
            fill(module.weight, 0.5 / math.sqrt(fan_in))
            if module.bias is not None:
                fill(module.bias, 0.05)
    wave = model(random_mel(24, config.mel_dim, seed))
    model.conv_post.weight.mul_(peak / wave.abs().max())
    return model
