# SPDX-License-Identifier: Apache-2.0
"""The voice that is trained: what its config.json will say, and the constants that the scripts share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

SPEAKERS = ("heart", "oak")  # the first is the default, the second is made of it by make_speaker.py
FAMILY = "blockwave-heart"  # of its codes; a voice with another codebook needs another name
NUM_CODES = 4096  # ids 1 .. 4096; id 0 is the unconditional code
QUIET = -9.0  # log-mel values below count as this when quantised: no code is spent on inaudible detail
REFERENCE_FRAMES = 300

DIT: dict[str, Any] = {
    "model_type": "qwen2_5_omni_dit",
    "hidden_size": 192,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "head_dim": 32,
    "ff_mult": 2,
    "emb_dim": 128,
    "dropout": 0.0,
    "block_size": 24,
    "look_ahead_layers": [4],
    "look_backward_layers": [0, 7],
    "repeats": 2,
    "num_embeds": NUM_CODES,
    "mel_dim": 80,
    "enc_emb_dim": 192,
    "enc_dim": 32,
    "enc_channels": [32, 32, 32, 32, 96],
    "enc_kernel_sizes": [5, 3, 3, 3, 1],
    "enc_dilations": [1, 2, 3, 4, 1],
    "enc_attention_channels": 16,
    "enc_res2net_scale": 2,
    "enc_se_channels": 16,
    "max_position_embeddings": 32768,
    "rope_theta": 10000.0,
}


def bigvgan(channels: int = 256, kernels: Sequence[int] = (7,), rates: Sequence[int] = (5, 4, 4, 3)) -> dict[str, Any]:
    """Four stages instead of the released six: twice as wide at 24 kHz for less arithmetic."""
    return {
        "model_type": "qwen2_5_omni_bigvgan",
        "mel_dim": DIT["mel_dim"],
        "upsample_initial_channel": channels,
        "resblock_kernel_sizes": list(kernels),
        "resblock_dilation_sizes": [[1, 3, 5] for _ in kernels],
        "upsample_rates": list(rates),
        "upsample_kernel_sizes": [2 * rate + rate % 2 for rate in rates],
    }


def config_json(vocoder: dict[str, Any], codebook: str | None = None) -> dict[str, Any]:
    """The checkpoint's config.json; ``codebook`` is the hash of its codebook."""
    return {
        "architectures": ["Qwen2_5OmniToken2WavModel"],
        "model_type": "qwen2_5_omni",
        "enable_audio_output": True,
        "blockwave": {"family": FAMILY, "default_voice": SPEAKERS[0], "codebook": codebook},
        "token2wav_config": {"model_type": "qwen2_5_omni_token2wav", "dit_config": DIT, "bigvgan_config": vocoder},
    }


def data_of(data: str | Path, speaker: str) -> Path:
    """Where a speaker's parts of the corpus are: the first one's lie in ``data`` itself."""
    return Path(data) if speaker == SPEAKERS[0] else Path(data) / speaker


def xvectors(names: Sequence[str], seed: int = 0) -> dict[str, Tensor]:
    """A fixed random x-vector [192] per speaker: orthogonal, of length sqrt(192) / 4, so that entries are near 0.25."""
    width = DIT["enc_emb_dim"]
    matrix = torch.randn(width, width, generator=torch.Generator().manual_seed(seed))
    rows = torch.linalg.qr(matrix)[0].T * width**0.5 / 4
    return {name: rows[i].clone() for i, name in enumerate(names)}
