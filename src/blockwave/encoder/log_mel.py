# SPDX-License-Identifier: Apache-2.0
"""The log-mel that reference mels and codes are made of: 80 bins at 100 frames per second of 16 kHz sound.

n_fft 1024, hop 160, Hann window of 640, 0 to 8000 Hz, reflect padding of (n_fft - hop) / 2 without centring, natural
logarithm of the magnitude mel clamped at 1e-5. Filters are Slaney's (Auditory Toolbox, 1998): linear below 1 kHz,
logarithmic above, each triangle of unit area.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from ..errors import AudioError
from .sound import Sound, resample

RATE = 16_000
FRAMES_PER_SECOND = 100
BINS = 80
_N_FFT, _HOP, _WINDOW, _FLOOR = 1024, RATE // FRAMES_PER_SECOND, 640, 1e-5
_PAD = (_N_FFT - _HOP) // 2
# Slaney's scale: 3 mels for every 200 Hz up to 1 kHz, then 27 mels for a factor of 6.4.
_HZ_PER_MEL, _BREAK_HZ, _MELS_PER_LOG = 200 / 3, 1000.0, 27 / np.log(6.4)


@lru_cache
def mel_filters() -> torch.Tensor:
    """float32 [80, 513]: weights of the magnitude spectrum's bins for every mel bin."""
    edges = _mel_to_hz(np.linspace(0.0, _hz_to_mel(RATE / 2), BINS + 2))
    bins = np.linspace(0.0, RATE / 2, _N_FFT // 2 + 1)
    low, centre, high = (edges[i : i + BINS, None] for i in range(3))
    triangles = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre)).clip(0.0)
    return torch.from_numpy((triangles * 2.0 / (high - low)).astype(np.float32))


def log_mel(samples: np.ndarray, num_frames: int) -> np.ndarray:
    """The first ``num_frames`` frames of float32 samples [L] at 16 kHz, as float32 [num_frames, 80].

    Sound that is shorter than the frames is continued by silence.

    Raises:
        AudioError: fewer than 3 frames, which reflect padding cannot continue.
    """
    if num_frames * _HOP <= _PAD:
        shortest = _PAD // _HOP + 1
        raise AudioError(f"sound: got {num_frames} frames of 10 ms, expected at least {shortest}; it is too short")
    wanted = num_frames * _HOP
    signal = torch.from_numpy(np.ascontiguousarray(samples[:wanted], np.float32))
    signal = torch.nn.functional.pad(signal, (0, wanted - len(signal)))
    signal = torch.nn.functional.pad(signal[None, None], (_PAD, _PAD), mode="reflect")[0, 0]
    window = torch.hann_window(_WINDOW)
    spectrum = torch.stft(signal, _N_FFT, _HOP, _WINDOW, window, center=False, return_complex=True).abs()
    return (mel_filters() @ spectrum).clamp_min(_FLOOR).log().T.contiguous().numpy()


def reference_mel(sound: Sound, frames_multiple: int = 1) -> np.ndarray:
    """The log-mel of a sound of any rate: float32 [T, 80], whole frames, a multiple of ``frames_multiple``."""
    groups = len(sound.samples) * FRAMES_PER_SECOND // (sound.rate * frames_multiple)
    num_frames = groups * frames_multiple
    whole = sound.samples[: num_frames * sound.rate // FRAMES_PER_SECOND]
    return log_mel(resample(whole, sound.rate, RATE) if len(whole) else whole, num_frames)


def _hz_to_mel(hz: float) -> float:
    linear = hz / _HZ_PER_MEL
    return linear if hz < _BREAK_HZ else _BREAK_HZ / _HZ_PER_MEL + np.log(hz / _BREAK_HZ) * _MELS_PER_LOG


def _mel_to_hz(mel: np.ndarray) -> np.ndarray:
    break_mel = _BREAK_HZ / _HZ_PER_MEL
    return np.where(mel < break_mel, mel * _HZ_PER_MEL, _BREAK_HZ * np.exp((mel - break_mel) / _MELS_PER_LOG))
