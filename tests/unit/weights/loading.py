# SPDX-License-Identifier: Apache-2.0
"""Loading a folder, and what it must say when it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from blockwave import errors
from blockwave.config import Token2WavConfig
from blockwave.errors import CheckpointError
from blockwave.velocity import DiT
from blockwave.waveform import BigVGAN
from blockwave.weights.keymap import keymap
from blockwave.weights.load import load_config, load_into

BIAS = "token2wav.code2wav_dit_model.proj_out.bias"
Q = "token2wav.code2wav_dit_model.transformer_blocks.1.attn.to_q.weight"
INDEX = "model.safetensors.index.json"


def modules(config: Token2WavConfig, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, nn.Module]:
    with torch.device("meta"):
        built = DiT(config.dit).to(dtype), BigVGAN(config.vocoder).to(dtype)
    for module in built:
        for parameter in module.to_empty(device="cpu").parameters():
            nn.init.constant_(parameter, torch.nan)  # what is not loaded stays visible
    return built


def loaded(folder: Path, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """What a folder loads to, under checkpoint names."""
    config = load_config(folder)
    dit, vocoder = modules(config, dtype)
    load_into(dit, vocoder, folder, config)
    parameters = {"dit": dict(dit.named_parameters()), "vocoder": dict(vocoder.named_parameters())}
    return {slot.name: slot.fetch(parameters[slot.part][slot.target]).detach() for slot in keymap(config)}


def refused(folder: Path, *texts: str, kind: type[errors.BlockwaveError] = CheckpointError) -> errors.BlockwaveError:
    with pytest.raises(kind) as caught:
        loaded(folder)
    for text in texts:
        assert text in str(caught.value), str(caught.value)
    return caught.value


def assert_same(got: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(got[name], value), name


def rewrite_index(folder: Path, edit) -> None:
    index = json.loads((folder / INDEX).read_text())
    edit(index)
    (folder / INDEX).write_text(json.dumps(index))
