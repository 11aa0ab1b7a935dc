# SPDX-License-Identifier: Apache-2.0
"""Slaney's mel filters for any rate and size, for the losses; the mel that the models read is the engine's."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

HZ_PER_MEL, BREAK_HZ, MELS_PER_LOG = 200 / 3, 1000.0, 27 / np.log(6.4)


@cache
def mel_filters(rate: int, n_fft: int, bins: int, top_hz: float) -> Tensor:
    """float32 [bins, n_fft / 2 + 1], triangles of unit area (Auditory Toolbox, 1998)."""
    break_mel = BREAK_HZ / HZ_PER_MEL
    top_mel = top_hz / HZ_PER_MEL if top_hz < BREAK_HZ else break_mel + np.log(top_hz / BREAK_HZ) * MELS_PER_LOG
    mel = np.linspace(0.0, top_mel, bins + 2)
    edges = np.where(mel < break_mel, mel * HZ_PER_MEL, BREAK_HZ * np.exp((mel - break_mel) / MELS_PER_LOG))
    low, centre, high = (edges[i : i + bins, None] for i in range(3))
    hertz = np.linspace(0.0, rate / 2, n_fft // 2 + 1)
    triangles = np.minimum((hertz - low) / (centre - low), (high - hertz) / (high - centre)).clip(0.0)
    return torch.from_numpy((triangles * 2.0 / (high - low)).astype(np.float32))
