# SPDX-License-Identifier: Apache-2.0
"""The noise a solve starts from belongs to its request. Nothing global is read or written."""

from __future__ import annotations

import secrets

import torch
from torch import Tensor

from ..errors import OptionError

# The generator of torch's CPU (mt19937) takes 32 bits of a seed: larger seeds would repeat the noise of smaller ones.
MAX_SEED = 2**32 - 1


def fresh_seed() -> int:
    """A seed from the operating system, for requests that named none."""
    return secrets.randbits(32)


def check_seed(seed: int) -> int:
    """Raises OptionError unless ``seed`` is an integer from 0 to 2^32 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise OptionError(f"seed: got {seed!r}, expected an integer from 0 to {MAX_SEED}")
    return seed


def seeded_noise(seed: int, num_frames: int, mel_dim: int) -> Tensor:
    """Standard normals float32 [num_frames, mel_dim] on the CPU, the same on every device and in every batch.

    Seed s means ``torch.Generator("cpu").manual_seed(s)`` and normals drawn in order; with 80 bins, drawing them
    block by block from one generator gives the same numbers.
    """
    generator = torch.Generator("cpu").manual_seed(check_seed(seed))
    return torch.randn(num_frames, mel_dim, generator=generator)
