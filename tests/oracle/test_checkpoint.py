# SPDX-License-Identifier: Apache-2.0
"""What make_checkpoint writes is a checkpoint to transformers too."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import torch

from blockwave.testing import random_dit
from blockwave.weights.keymap import keymap, shapes
from blockwave.weights.load import load_config
from blockwave.weights.make import make_checkpoint


@pytest.fixture(scope="module", params=[1, 3])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "made", "tiny", shards=request.param)


@pytest.fixture(scope="module")
def loaded(folder: Path):
    from transformers.models.qwen2_5_omni.configuration_qwen2_5_omni import Qwen2_5OmniConfig
    from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniToken2WavModel

    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it reports the other stages' tensors
    try:
        config = Qwen2_5OmniConfig.from_pretrained(folder).token2wav_config
        return Qwen2_5OmniToken2WavModel.from_pretrained(
            folder, config=config, key_mapping={r"^token2wav\.": ""}, dtype=torch.float32, output_loading_info=True
        )
    finally:
        logger.setLevel(level)


def test_nothing_is_missing_unexpected_or_misshapen(loaded) -> None:
    _, info = loaded
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    assert info["unexpected_keys"]  # the other stages are there
    assert all(name.startswith(("thinker.", "talker.")) for name in info["unexpected_keys"])


def test_the_table_of_names_is_the_reference_models_own(loaded, folder: Path) -> None:
    model, _ = loaded
    assert {n: tuple(v.shape) for n, v in model.state_dict().items()} == shapes(load_config(folder))


def test_both_libraries_read_the_same_values(loaded, folder: Path) -> None:
    model, _ = loaded
    stored = model.state_dict()
    config = load_config(folder)
    parameters = dict(random_dit(config).named_parameters())
    for slot in keymap(config):
        if slot.part == "dit":
            assert torch.equal(slot.fetch(parameters[slot.target]), stored[slot.name]), slot


def test_the_whole_models_configuration_reads_ours(folder: Path) -> None:
    """The top level of config.json is that of the whole model, not of the stage alone."""
    from transformers import AutoConfig

    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        config = AutoConfig.from_pretrained(folder)
    finally:
        logger.setLevel(level)
    assert type(config).__name__ == "Qwen2_5OmniConfig"
    own = json.loads((folder / "config.json").read_text())["token2wav_config"]
    for section in ("dit_config", "bigvgan_config"):
        read = getattr(config.token2wav_config, section)
        for key, value in own[section].items():
            if key == "rope_theta":
                assert read.rope_parameters["rope_theta"] == value
            else:
                assert getattr(read, key) == value, key
