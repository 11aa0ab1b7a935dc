# SPDX-License-Identifier: Apache-2.0
"""The engine's BigVGAN made trainable: initial values, weight norm, a forward for training, a warm start."""

from __future__ import annotations

import re
from pathlib import Path

import fast_snake
import settings
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from blockwave import Token2Wav
from blockwave.config import Token2WavConfig
from blockwave.waveform.bigvgan import BigVGAN
from blockwave.waveform.normalise import normalise

CONTEXT = (16, 4, 2)  # mel frames kept on each side through the first stage, the second, the rest
CONVOLUTIONS = (nn.Conv1d, nn.ConvTranspose1d)


def make(channels: int, kernels: list[int], rates: list[int], voice: Path | None = None) -> BigVGAN:
    """With scaled initial values or the weights of ``voice``, and weight norm on every convolution.

    N(0, 1 / fan-in) keeps the variance from stage to stage; residual branches start near zero. With N(0, 0.01)
    everywhere (HiFi-GAN) the loss after 500 steps was a quarter higher; with Kaiming's values and no weight norm most
    runs did not learn.
    """
    shape = settings.bigvgan(channels, kernels, rates)
    model = BigVGAN(Token2WavConfig.from_dict(settings.config_json(shape)).vocoder)
    for name, module in model.named_modules():
        if not isinstance(module, CONVOLUTIONS):
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
        fan_in = module.in_channels * module.kernel_size[0]
        if isinstance(module, nn.ConvTranspose1d):
            fan_in /= module.stride[0]
        scale = 0.3 if "convs2" in name else 1.0
        nn.init.normal_(module.weight, 0, 0.01 if name == "conv_post" else scale * fan_in**-0.5)
    if voice is not None:
        warm_start(model, Token2Wav.from_pretrained(voice).engine.vocoder)
    for module in list(model.modules()):
        if isinstance(module, CONVOLUTIONS):
            weight_norm(module)
    fast_snake.install(model)
    return model


@torch.no_grad()
def warm_start(model: BigVGAN, old: BigVGAN) -> None:
    """Takes over a vocoder whose kernels are shorter or fewer so that the function stays the same.

    A kernel is put into the middle of a longer one, between zeros; every parallel block starts as a copy of the first.
    """
    there = old.state_dict()
    for name, target in model.state_dict().items():
        source = there[name if name in there else re.sub(r"blocks\.\d+", "blocks.0", name)]
        missing = target.shape[-1] - source.shape[-1] if target.ndim == 3 else 0
        target.copy_(nn.functional.pad(source, (missing // 2, missing // 2)))


def fuse(model: BigVGAN) -> BigVGAN:
    """Bakes the weight norm into plain weights, in place."""
    for module in model.modules():
        if isinstance(module, CONVOLUTIONS):
            parametrize.remove_parametrizations(module, "weight")
    return model


def vocode(model: BigVGAN, mel: Tensor) -> Tensor:
    """The forward without the final clamp, which has no gradient outside [-1, 1]: [B, T, 80] to [B, L]."""
    return _finish(model, _through(model, model.conv_pre(normalise(mel).transpose(1, 2)), 0, len(model.stages)))


def vocode_inside(model: BigVGAN, mel: Tensor) -> Tensor:
    """As :func:`vocode` for the frames inside CONTEXT[0] at both ends, which are cut off as soon as they may be.

    Without true frames around it a segment would end in zeros, which say where it begins; a vocoder that counts from
    there learns a phase that it cannot know when it renders a sentence. Late stages reach less far and need fewer.
    """
    rates = model.config.upsample_rates
    x = _through(model, model.conv_pre(normalise(mel).transpose(1, 2)), 0, 1)
    x = _through(model, _trim(x, (CONTEXT[0] - CONTEXT[1]) * rates[0]), 1, 2)
    per_frame = rates[0] * rates[1]
    x = _through(model, _trim(x, (CONTEXT[1] - CONTEXT[2]) * per_frame), 2, len(rates))
    return _trim(_finish(model, x), CONTEXT[2] * model.config.samples_per_frame)


def _trim(x: Tensor, count: int) -> Tensor:
    return x[..., count:-count].contiguous()


def _through(model: BigVGAN, x: Tensor, first: int, end: int) -> Tensor:
    for stage in model.stages[first:end]:
        x = stage(x)
    return x


def _finish(model: BigVGAN, x: Tensor) -> Tensor:
    return model.conv_post(model.post_act(x))[:, 0]
