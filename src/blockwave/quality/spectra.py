# SPDX-License-Identifier: Apache-2.0
"""Distances between spectra: log-mel, mean and worst block, and spectral convergence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .exactness import check_shapes

BLOCK_FRAMES = 24  # 0.24 s at 100 frames per second: a block of Qwen2.5-Omni
_N_FFT, _HOP = 1024, 256


@dataclass(frozen=True)
class LogMelDistance:
    """Differences of natural logarithms: 0.115 is 1 dB.

    Attributes:
        mean: over all frames and bins.
        worst_block: the largest mean of one block.
        worst_block_index: which block that is.
    """

    mean: float
    worst_block: float
    worst_block_index: int


def log_mel_distance(ours: np.ndarray, reference: np.ndarray, block_frames: int = BLOCK_FRAMES) -> LogMelDistance:
    """Mean absolute difference of two log-mels [T, M], of all frames and of the worst block.

    The L1 distance that HiFi-GAN is trained with (Kong et al. 2020, arXiv 2010.05646, the mel-spectrogram loss). The
    last block may be shorter.

    Raises:
        OptionError: unequal shapes.
    """
    check_shapes(ours, reference)
    errors = np.abs(ours.astype(np.float64) - reference.astype(np.float64)).mean(axis=1)
    blocks = [float(errors[i : i + block_frames].mean()) for i in range(0, len(errors), block_frames)]
    worst = int(np.argmax(blocks))
    return LogMelDistance(float(errors.mean()), blocks[worst], worst)


def spectral_convergence(ours: np.ndarray, reference: np.ndarray) -> float | None:
    """|| |S| - |R| || / || |R| || of the magnitude spectra of two waveforms [L], Frobenius norms.

    Arik, Jun and Diamos 2018 (arXiv 1808.06719), the spectral convergence loss; here with a Hann window of 1024 and a
    hop of 256 samples, no padding beyond the ends. None where the reference is silent.

    Raises:
        OptionError: unequal shapes.
    """
    check_shapes(ours, reference)
    one, other = _magnitudes(ours), _magnitudes(reference)
    norm = float(other.norm())
    return float((one - other).norm()) / norm if norm else None


def _magnitudes(samples: np.ndarray) -> torch.Tensor:
    signal = torch.from_numpy(samples.astype(np.float64))
    signal = torch.nn.functional.pad(signal, (0, max(0, _N_FFT - len(signal))))
    window = torch.hann_window(_N_FFT, dtype=torch.float64)
    return torch.stft(signal, _N_FFT, _HOP, window=window, center=False, return_complex=True).abs()
