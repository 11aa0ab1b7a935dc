# SPDX-License-Identifier: Apache-2.0
"""Small discriminators for the adversarial phase of the vocoder: period, raster and resolution."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from corpus import SAMPLES_PER_FRAME
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

GAIN = 8.0  # speech here has an RMS around 0.05: without it the discriminators on the wave learn very slowly


def stack(layers: nn.ModuleList, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    features = []
    for layer in layers:
        x = F.leaky_relu(layer(x), 0.1)
        features.append(x)
    return x, features


class Period(nn.Module):
    """The wave folded to [samples / period, period], strided convolutions along time.

    Kong et al., 2020, HiFi-GAN, arXiv 2010.05646, section 2.3.
    """

    phase_free = False

    def __init__(self, period: int, channels: tuple[int, ...] = (16, 32, 64, 128)) -> None:
        super().__init__()
        self.period = period
        sizes = (1, *channels)
        self.convs = nn.ModuleList(weight_norm(nn.Conv2d(a, b, (5, 1), (3, 1), (2, 0))) for a, b in pairwise(sizes))
        self.post = weight_norm(nn.Conv2d(channels[-1], 1, (3, 1), 1, (1, 0)))

    def forward(self, wave: Tensor) -> tuple[Tensor, list[Tensor]]:
        x = F.pad(GAIN * wave, (0, -wave.shape[1] % self.period), "reflect").view(len(wave), 1, -1, self.period)
        x, features = stack(self.convs, x)
        return self.post(x), features


class Raster(nn.Module):
    """The differentiated wave as a picture, one mel frame per row: what is locked to frames stands as vertical lines.

    Pulses of a voice slant across the rows, as fast as the pitch differs from a multiple of the frame rate. Each row
    shows half of the next one too, so that a line that leaves at the right is seen to go on.
    """

    phase_free = False

    def __init__(self, channels: tuple[int, ...] = (16, 24, 32, 48)) -> None:
        super().__init__()
        sizes = (1, *channels)
        strides = ((1, 3), (1, 2), (2, 2), (2, 2))
        self.convs = nn.ModuleList(
            weight_norm(nn.Conv2d(a, b, (3, 9), s, (1, 4)))
            for a, b, s in zip(sizes[:-1], sizes[1:], strides, strict=True)
        )
        self.post = weight_norm(nn.Conv2d(channels[-1], 1, 3, 1, 1))

    def forward(self, wave: Tensor) -> tuple[Tensor, list[Tensor]]:
        # First difference: the lines are above 1 kHz, under low harmonics that are 20 to 40 dB stronger.
        x = 3 * GAIN * (wave[:, 1:] - wave[:, :-1])
        width = SAMPLES_PER_FRAME * 3 // 2
        x, features = stack(self.convs, x.unfold(1, width, SAMPLES_PER_FRAME).unsqueeze(1))
        return self.post(x), features


class Resolution(nn.Module):
    """Convolutions over the compressed magnitude spectrogram [frames, bins], strided along frequency.

    Jang et al., 2021, UnivNet, arXiv 2106.07889, section 2.3.
    """

    phase_free = True

    def __init__(self, n_fft: int, channels: int = 16) -> None:
        super().__init__()
        self.n_fft = n_fft
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)
        strides = (2, 2, 2, 1)
        sizes = (1, channels // 2, channels, channels, channels)
        self.convs = nn.ModuleList(
            weight_norm(nn.Conv2d(a, b, (3, 7), (1, s), (1, 3)))
            for a, b, s in zip(sizes[:-1], sizes[1:], strides, strict=True)
        )
        self.post = weight_norm(nn.Conv2d(channels, 1, 3, 1, 1))

    def forward(self, wave: Tensor) -> tuple[Tensor, list[Tensor]]:
        spec = torch.stft(wave, self.n_fft, self.n_fft // 4, window=self.window, return_complex=True)
        x = (spec.real**2 + spec.imag**2 + 1e-7).pow(0.15).transpose(1, 2).unsqueeze(1)
        x, features = stack(self.convs, x)
        return self.post(x), features


class Discriminators(nn.Module):
    def __init__(self, periods: tuple[int, ...] = (2, 5, 11), n_ffts: tuple[int, ...] = (512, 1024, 2048)) -> None:
        super().__init__()
        self.all = nn.ModuleList([*map(Period, periods), Raster(), *map(Resolution, n_ffts)])

    def forward(self, wave: Tensor) -> list[tuple[Tensor, list[Tensor]]]:
        return [d(wave) for d in self.all]


def discriminator_loss(real: list, fake: list) -> Tensor:
    """Least squares (Mao et al., 2017, arXiv 1611.04076), averaged over discriminators."""
    return sum(((1 - r) ** 2).mean() + (f**2).mean() for (r, _), (f, _) in zip(real, fake, strict=True)) / len(real)


def generator_loss(disc: Discriminators, real: list, fake: list) -> tuple[Tensor, Tensor]:
    """The adversarial term, averaged over discriminators, and feature matching over those that see no phase.

    The phase of the source is not determined by its mel. Features of the wave itself would pull the vocoder to the mean
    over phases, which is no pulse at all.
    """
    adversarial = sum(((1 - f) ** 2).mean() for f, _ in fake) / len(fake)
    distances = [
        (b - a.detach()).abs().mean() / a.detach().abs().mean().clamp_min(1e-3)
        for d, (_, there), (_, here) in zip(disc.all, real, fake, strict=True)
        if d.phase_free
        for a, b in zip(there, here, strict=True)
    ]
    return adversarial, sum(distances) / len(distances)
