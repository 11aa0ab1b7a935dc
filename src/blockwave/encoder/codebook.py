# SPDX-License-Identifier: Apache-2.0
"""A codebook of mel patches: sound becomes codes by the nearest centroid."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from ..config import Token2WavConfig
from ..errors import CheckpointError
from .log_mel import BINS, reference_mel
from .sound import Sound

CODEBOOK_FILE = "codebook.safetensors"
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Codebook:
    """Centroids of consecutive mel frames.

    Attributes:
        centroids: float16 or float32 [K, frames_per_code * 80].
        first_id: the code of row 0.
        quiet: log-mel values below it count as this value: no code is spent on inaudible detail.
    """

    centroids: np.ndarray
    first_id: int
    quiet: float

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Codebook:
        """Reads ``centroids`` with ``quiet`` and ``first_id`` in the file's metadata.

        Raises:
            CheckpointError: missing, broken, or of another shape.
        """
        from safetensors import SafetensorError, safe_open

        path = Path(path)
        try:
            with safe_open(path, "np") as file:
                about = file.metadata() or {}
                centroids = file.get_tensor("centroids")
            quiet, first_id = float(about["quiet"]), int(about["first_id"])
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise CheckpointError(f"{path}: no codebook with centroids, quiet and first_id ({error})") from None
        if centroids.ndim != 2 or centroids.shape[1] % BINS or not np.isfinite(centroids).all():
            raise CheckpointError(
                f"{path}: got centroids {list(centroids.shape)}, expected finite [K, frames x {BINS}]"
            )
        return cls(centroids, first_id, quiet)

    @classmethod
    def of_checkpoint(cls, folder: Path, config: Token2WavConfig) -> Codebook:
        """The codebook that a checkpoint publishes beside its weights.

        Raises:
            CheckpointError: there is none, or it is not the one that the configuration names.
        """
        path = folder / CODEBOOK_FILE
        if not path.exists():
            raise CheckpointError(
                f"{folder}: has no {CODEBOOK_FILE}, so sound cannot be turned into its codes; the encoder of "
                "Qwen2.5-Omni is not public, its codes come from the talker"
            )
        codebook = cls.load(path)
        last_id = codebook.first_id + len(codebook.centroids) - 1
        fits = codebook.first_id >= 0 and last_id <= config.dit.num_embeds
        if not fits or codebook.frames_per_code != config.dit.repeats or config.codebook not in (None, codebook.hash):
            got = (codebook.first_id, last_id, codebook.frames_per_code, codebook.hash)
            expected = (0, config.dit.num_embeds, config.dit.repeats, config.codebook)
            raise CheckpointError(
                f"{path}: got (first id, last id, frames per code, hash) {got}, expected within {expected}; it "
                "belongs to another checkpoint"
            )
        return codebook

    @property
    def frames_per_code(self) -> int:
        return self.centroids.shape[1] // BINS

    @cached_property
    def hash(self) -> str:
        """First 16 hexadecimal digits of SHA-256 over the centroids' bytes: what codes made with it are marked with."""
        return hashlib.sha256(np.ascontiguousarray(self.centroids).tobytes()).hexdigest()[:16]

    def encode(self, mel: np.ndarray) -> np.ndarray:
        """log-mel float32 [frames_per_code * N, 80] -> codes int64 [N]."""
        patches = torch.from_numpy(mel.reshape(-1, self.centroids.shape[1])).clamp_min(self.quiet)
        centroids = torch.from_numpy(self.centroids.astype(np.float32))
        half_norms = 0.5 * centroids.square().sum(1)
        # argmin |p - c|^2 = argmin |c|^2 / 2 - p.c
        nearest = [
            torch.addmm(half_norms, part, centroids.T, alpha=-1).argmin(1) for part in patches.split(_ROWS_AT_ONCE)
        ]
        return torch.cat(nearest).numpy() + self.first_id

    def encode_sound(self, sound: Sound) -> np.ndarray:
        """Sound of any rate -> codes int64 [N], N = whole codes that fit.

        Raises:
            AudioError: too short.
        """
        return self.encode(reference_mel(sound, self.frames_per_code))
