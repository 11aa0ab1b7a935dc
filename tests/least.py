# SPDX-License-Identifier: Apache-2.0
"""The least checkpoint with the reach of the released one: for tests of very many blocks, or of very many requests."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from blockwave.config import Token2WavConfig
from blockwave.weights.keymap import WHOLE_MODEL_PREFIX, shapes
from blockwave.weights.presets import config_json
from blockwave.weights.random_values import MEL_MEAN, MEL_STD, random_tensor

# Blocks of 24 frames, two layers that look back and one between them that looks ahead, as released; 4 channels a head
# would leave two rotary pairs only.
_DIT = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "head_dim": 8,
    "ff_mult": 1,
    "emb_dim": 8,
    "look_ahead_layers": [1],
    "look_backward_layers": [0, 2],
    "enc_dim": 8,
    "enc_channels": [8, 8, 8, 8, 24],
    "enc_attention_channels": 4,
    "enc_res2net_scale": 2,
    "enc_se_channels": 4,
}
_VOCODER = {
    "upsample_initial_channel": 4,
    "resblock_kernel_sizes": [3],
    "resblock_dilation_sizes": [[1, 3, 5]],
    "upsample_rates": [20, 12],
    "upsample_kernel_sizes": [24, 16],
}
_REFERENCE_FRAMES = {"Chelsie": 60, "Ethan": 43}


def least_checkpoint(folder: Path, **dit: object) -> Path:
    """Writes it, with both voices; ``dit`` replaces settings of its transformer. Returns the folder."""
    settings = config_json("tiny") | {"blockwave": {"random": True}}
    settings["token2wav_config"]["dit_config"] |= _DIT | dit
    settings["token2wav_config"]["bigvgan_config"] |= _VOCODER
    config = Token2WavConfig.from_dict(settings)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(settings))
    weights = {name: random_tensor(name, shape, config, 0) for name, shape in shapes(config).items()}
    save_file({WHOLE_MODEL_PREFIX + name: tensor for name, tensor in weights.items()}, folder / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    speakers = {
        name: {
            "bos_token": 151_872,
            "cond": torch.randn(1, config.dit.xvector_dim, generator=generator),
            "ref_mel": MEL_MEAN + MEL_STD * torch.randn(1, frames, config.dit.mel_dim, generator=generator),
        }
        for name, frames in _REFERENCE_FRAMES.items()
    }
    torch.save(speakers, folder / "spk_dict.pt")
    return folder
