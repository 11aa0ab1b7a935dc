# SPDX-License-Identifier: Apache-2.0
"""The low-pass filter around the vocoder's activations. It is computed, never read from a checkpoint."""

from __future__ import annotations

import math

import torch


def kaiser_sinc(num_taps: int, cutoff: float, half_width: float) -> tuple[float, ...]:
    """Taps of a Kaiser-windowed sinc with unit sum.

    Source: Kaiser's design rules, as in Oppenheim and Schafer, Discrete-Time Signal Processing, section 7.5.3.

    Args:
        num_taps: an even number; the filter is symmetric about the middle between two taps.
        cutoff: edge of the pass band as a fraction of the sampling rate, 0 < cutoff <= 0.5.
        half_width: half the width of the transition as a fraction of the sampling rate.

    Returns:
        ``num_taps`` numbers, each exactly a float32. They are computed in float32 on purpose: the weights were trained
        behind the filter as float32 gives it, and the last bits of the taps matter (computed in float64, the same
        filter moves the wave by 2e-6 of its maximum, more than all other rounding).
    """
    half = num_taps // 2
    attenuation_db = 2.285 * (half - 1) * math.pi * 4 * half_width + 7.95
    if attenuation_db > 50:
        beta = 0.1102 * (attenuation_db - 8.7)
    elif attenuation_db >= 21:
        beta = 0.5842 * (attenuation_db - 21) ** 0.4 + 0.07886 * (attenuation_db - 21)
    else:
        beta = 0.0
    window = torch.kaiser_window(num_taps, periodic=False, beta=beta, dtype=torch.float32, device="cpu")
    time = torch.arange(-half, half, dtype=torch.float32, device="cpu") + 0.5
    taps = 2 * cutoff * window * torch.sinc(2 * cutoff * time)
    return tuple((taps / taps.sum()).tolist())


# BigVGAN resamples by two in both directions: cutoff at half of the lower rate's band, transition 0.6 of it, six taps
# per sample of the lower rate (Lee et al., 2023, arXiv 2206.04658, section 3.2 and its code's defaults).
ANTI_ALIAS_TAPS = kaiser_sinc(num_taps=12, cutoff=0.25, half_width=0.3)
