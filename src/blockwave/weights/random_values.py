# SPDX-License-Identifier: Apache-2.0
"""Random values for a checkpoint that behaves like a trained one where it matters to tests and measurements.

Plain initialisation makes a network that ignores its inputs: gates near zero switch the layers off, even attention
ignores the neighbours, and the sound vanishes or clips. Here every path keeps its share of the variance:

- input: the noisy mel, the codes, both speaker vectors reach the hidden state with comparable strength;
- attention scores have a standard deviation of about 1.5, so a few keys out of a block count, and which ones matters;
- gates are around +1 or -1, and the branches of L layers together add about as much variance as the input has;
- the velocity is of order one around the bias -5, so that mels lie where natural-log mels lie, and the input does
  not see the mean that builds up along the solve;
- high frequencies of the time embedding are damped: the velocity is smooth in time, as a trained one is, and rounding
  of t does not matter;
- the vocoder's branches and stages keep their variance; its last filter has no constant part and a fixed gain.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable

import torch
from torch import Tensor

from ..config import Token2WavConfig
from .keymap import DIT_PREFIX, Shape

# Natural logarithm of mel magnitudes, which are clamped at 1e-5 from below.
MEL_FLOOR, MEL_CEILING = math.log(1e-5), 2.0
MEL_MEAN = -5.0
MEL_STD = 1.5
_VELOCITY_STD = 1.2
_SCORE_STD = 1.5
_WAVE_STD = 0.1

# Second moments of nonlinearities on standard normals: E silu(x)^2, E gelu(x)^2.
_SILU, _GELU = 0.355, 0.425
# Standard deviation of what scale, shift and gate add; second moment of a modulated unit-variance state.
_MODULATION = 0.3
_MODULATED = 1.2
# Second moment of x + sin(x)^2 for a standard normal, mean included.
_SNAKE = 1.4
# Frequency (radians over the whole solve) from which the time embedding is damped.
_TIME_CUTOFF = 3.0

# Share of the variance of the hidden state at the input; their sum is not 1 on purpose, layer norm follows.
_SHARES = {"mel": 0.4, "reference": 0.6, "code": 1.0, "xvector": 0.6}


def random_tensor(name: str, shape: Shape, config: Token2WavConfig, seed: int) -> Tensor:
    """Values (float32) for the checkpoint tensor ``name``; they depend on name, seed and sizes, not on the order."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))
    normal = torch.randn(shape, generator=generator)
    for pattern, rule in _RULES:
        if re.search(pattern, name):
            return rule(normal, config).contiguous()
    raise KeyError(name)


Rule = Callable[[Tensor, Token2WavConfig], Tensor]


def _fan_in(gain: float, second_moment: float = 1.0) -> Rule:
    """Output of standard deviation ``gain`` for inputs of the given second moment."""
    return lambda x, _: x * (gain / math.sqrt(x[0].numel() * second_moment))


def _scaled(std: float, mean: float = 0.0) -> Rule:
    return lambda x, _: mean + std * x


def _branch(second_moment: float) -> Rule:
    """Output of a residual branch: 2 L of them add the variance 1.5."""

    def rule(x: Tensor, config: Token2WavConfig) -> Tensor:
        std = math.sqrt(1.5 / (2 * config.dit.num_layers))
        return x * (std / math.sqrt(x.shape[1] * second_moment))

    return rule


def _time_up(x: Tensor, config: Token2WavConfig) -> Tensor:
    half = x.shape[1] // 2
    frequency = 1000.0 * torch.exp(-math.log(10000.0) / (half - 1) * torch.arange(half))
    damping = 1 / (1 + frequency / _TIME_CUTOFF)
    return x * torch.cat([damping, damping]) / damping.square().sum().sqrt()


def _input(x: Tensor, config: Token2WavConfig) -> Tensor:
    c = config.dit
    widths = [c.mel_dim, c.speaker.output_dim, c.code_dim, c.xvector_dim]
    parts = list(x.split(widths, dim=1))
    parts[0] = parts[0] - parts[0].mean(1, keepdim=True)  # blind to the level that the solve adds to all bins
    return torch.cat([p * math.sqrt(s / p.shape[1]) for p, s in zip(parts, _SHARES.values(), strict=True)], dim=1)


def _modulation_bias(x: Tensor, config: Token2WavConfig) -> Tensor:
    bias = 0.1 * x.view(6, -1)
    for gate in (2, 5):  # shift, scale, gate of attention, then of the feed-forward
        bias[gate] = torch.where(x.view(6, -1)[gate] < 0, -1.0, 1.0)
    return bias.view(-1)


def _transposed(x: Tensor, config: Token2WavConfig) -> Tensor:
    """[in, out, kernel]: every output sums in * kernel / rate products."""
    rates = dict(zip(config.vocoder.upsample_kernel_sizes, config.vocoder.upsample_rates, strict=True))
    return x * math.sqrt(rates[x.shape[2]] / (x.shape[0] * x.shape[2]) / 1.5)


def _wave(x: Tensor, config: Token2WavConfig) -> Tensor:
    x = x - x.mean(2, keepdim=True)
    return x * (_WAVE_STD / (x.square().sum() * 2.0).sqrt())


_SPEAKER = r"spk_encoder\."
_RULES: tuple[tuple[str, Rule], ...] = (
    (r"time_mlp\.0\.weight", _time_up),
    (r"time_mlp\.2\.weight", _fan_in(1.0, _SILU)),
    (r"codec_embed", _scaled(1.0)),
    (r"input_embed\.proj\.weight", _input),
    (_SPEAKER + r"blocks\.0\..*weight", _fan_in(math.sqrt(2), MEL_STD**2 + 4.0)),
    (_SPEAKER + r"(asp\.conv|.*se_block\.conv2)\.weight", _fan_in(1.0)),
    (_SPEAKER + r"fc\.weight", _fan_in(1.0, 2.0)),
    (_SPEAKER + r".*weight", _fan_in(math.sqrt(2))),
    (_SPEAKER + r".*bias", _scaled(0.5)),
    (r"attn_norm\.linear\.weight", _fan_in(_MODULATION, _SILU)),
    (r"attn_norm\.linear\.bias", _modulation_bias),
    (r"norm_out\.linear\.weight", _fan_in(_MODULATION, _SILU)),
    (r"norm_out\.linear\.bias", _scaled(0.3)),
    (r"to_[qk]\.weight", _fan_in(math.sqrt(_SCORE_STD), _MODULATED)),
    (r"to_[qk]\.bias", _scaled(0.3)),
    (r"to_v\.weight", _fan_in(1.0, _MODULATED)),
    (r"to_out\.0\.weight", _branch(0.5)),
    (r"ff\.ff\.0\.weight", _fan_in(1.0, _MODULATED)),
    (r"ff\.ff\.3\.weight", _branch(_GELU)),
    (r"proj_out\.weight", _fan_in(_VELOCITY_STD, _MODULATED + 0.2)),
    (r"proj_out\.bias", _scaled(0.3, MEL_MEAN)),
    (re.escape(DIT_PREFIX) + r".*bias", _scaled(0.1)),
    (r"conv_pre\.weight", _fan_in(1.0, 0.1)),
    (r"ups\..*weight", _transposed),
    (r"convs1\..*weight", _fan_in(1.0, _SNAKE)),
    (r"convs2\..*weight", _fan_in(0.5, _SNAKE)),
    (r"act\.(alpha|beta)", _scaled(0.3)),
    (r"conv_post\.weight", _wave),
    (r"bias", _scaled(0.05)),
)
