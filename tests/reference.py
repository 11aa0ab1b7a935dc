# SPDX-License-Identifier: Apache-2.0
"""What exactness is measured against, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from blockwave import Voice
from blockwave.integrations.reference import load_reference, reference_mel, reference_wave
from blockwave.mel.noise import seeded_noise

__all__ = ["load_reference", "reference_speech"]


def reference_speech(model: Any, codes: list[int], voice: Voice, seed: int, **options: Any) -> tuple[np.ndarray, ...]:
    """mel [T, M] and samples [L] of transformers."""
    noise = seeded_noise(seed, 2 * len(codes), 80)
    mel = reference_mel(model, torch.tensor(codes), voice, noise, **options)
    return mel.numpy(), reference_wave(model, mel).numpy()
