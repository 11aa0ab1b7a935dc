# SPDX-License-Identifier: Apache-2.0
"""config.json: both generations of names, transformers' defaults, and what each refusal says."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from blockwave.codes import QWEN2_5_OMNI, CodeClock
from blockwave.config import Token2WavConfig
from blockwave.errors import ConfigError
from blockwave.weights.presets import config_json


def read(dit=None, vocoder=None, **top):
    return Token2WavConfig.from_dict({"dit_config": dit or {}, "bigvgan_config": vocoder or {}, **top})


@pytest.mark.parametrize("size", ["tiny", "small", "full"])
def test_both_generations_of_names_mean_the_same(size):
    newer, older = config_json(size), config_json(size, older_keys=True)
    assert {"dim", "depth", "heads"} <= older["token2wav_config"]["dit_config"].keys()
    assert Token2WavConfig.from_dict(newer) == Token2WavConfig.from_dict(older)


def test_the_section_alone_is_enough():
    whole = config_json("tiny")
    assert Token2WavConfig.from_dict(whole["token2wav_config"]) == Token2WavConfig.from_dict(whole)


def test_reading_changes_nothing():
    settings = config_json("tiny")
    before = copy.deepcopy(settings)
    Token2WavConfig.from_dict(settings)
    assert settings == before


def test_missing_and_null_keys_take_the_released_values():
    config = read({"hidden_size": None, "look_ahead_layers": None}, {"upsample_rates": None})
    assert config == Token2WavConfig.from_dict(config_json("full"))
    dit = config.dit
    assert (dit.hidden_size, dit.num_layers, dit.num_heads, dit.head_dim, dit.ff_mult) == (1024, 22, 16, 64, 2)
    assert (dit.code_dim, dit.num_embeds, dit.repeats, dit.block_size) == (512, 8193, 2, 24)
    assert (dit.look_ahead_layers, dit.look_backward_layers) == ((10,), (0, 20))
    assert (dit.max_position_embeddings, dit.rope_theta, dit.rope_heads) == (32_768, 10_000.0, "first")
    assert config.vocoder.upsample_rates == (5, 3, 2, 2, 2, 2)
    assert config.clock == CodeClock(2, 240, 24, 24_000)
    assert (config.family, config.default_voice) == (QWEN2_5_OMNI, "Chelsie")


def test_reach_follows_the_layer_lists():
    dit = read({"look_backward_layers": [0, 20], "look_ahead_layers": [10, 20]}).dit
    assert [dit.reach(layer) for layer in (0, 1, 10, 20)] == [(1, 0), (0, 0), (0, 1), (1, 1)]


def test_channels_halve_at_every_stage():
    vocoder = read(vocoder={"upsample_initial_channel": 96, "upsample_rates": [5, 4], "upsample_kernel_sizes": [11, 8]})
    assert [vocoder.vocoder.channels(stage) for stage in (0, 1)] == [48, 24]
    assert vocoder.vocoder.samples_per_frame == 20


@pytest.mark.parametrize(
    ("kernels", "dilations", "shortest"),
    [
        ((5, 3, 3, 3, 1), (1, 2, 3, 4, 1), 5),
        ((5, 3, 3, 3, 1), (4, 2, 3, 4, 1), 9),
        ((4, 2, 2, 2, 1), (1, 1, 1, 1, 1), 3),
    ],
)
def test_the_shortest_reference_follows_from_the_padding(kernels, dilations, shortest):
    config = read({"enc_kernel_sizes": list(kernels), "enc_dilations": list(dilations)})
    assert config.dit.speaker.min_frames == shortest


def test_the_theta_of_either_generation_is_read():
    assert read({"rope_theta": 5e4}).dit.rope_theta == 5e4
    assert read({"rope_parameters": {"rope_type": "default", "rope_theta": 5e4}}).dit.rope_theta == 5e4
    assert read({"rope_scaling": {"type": "default"}, "rope_theta": 7}).dit.rope_theta == 7.0


def test_other_families_say_so():
    config = read({"rope_heads": "all"}, blockwave={"family": "qwen3-tts-25hz", "default_voice": "Ann"})
    assert (config.family.name, config.family.special, config.default_voice) == ("qwen3-tts-25hz", frozenset(), "Ann")
    assert config.dit.rope_heads == "all"
    assert read(blockwave={"family": "qwen3-tts-25hz"}).default_voice is None


def test_the_configuration_is_frozen():
    config = read()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.sample_rate = 1  # pyright: ignore[reportAttributeAccessIssue]


DIT_REFUSALS = [
    ({"hidden_size": 64, "dim": 128}, r"got \{'hidden_size': 64, 'dim': 128\}, expected one value; these are names"),
    ({"hidden_size": 0}, r"dit_config\.hidden_size: got 0, expected an integer >= 1"),
    ({"depth": 2.0}, r"dit_config\.num_hidden_layers: got 2\.0, expected an integer >= 1"),
    ({"heads": True}, r"dit_config\.num_attention_heads: got True, expected an integer >= 1"),
    ({"head_dim": 15}, r"dit_config\.head_dim: got 15, expected an even number"),
    ({"look_ahead_layers": 10}, r"look_ahead_layers: got 10, expected a list of integers >= 0"),
    ({"look_backward_layers": [-1]}, r"look_backward_layers: got \[-1\], expected a list of integers >= 0"),
    ({"depth": 10}, r"look_ahead_layers: got \(10,\), expected layers below num_hidden_layers = 10"),
    ({"rope_parameters": [1]}, r"rope_parameters: got \[1\], expected an object with rope_theta"),
    ({"rope_parameters": {"rope_type": "yarn"}}, r"rope_parameters\.rope_type: got 'yarn', expected 'default'"),
    ({"rope_theta": -1.0}, r"rope_theta: got -1\.0, expected a positive number"),
    ({"rope_theta": float("nan")}, r"rope_theta: got nan, expected a positive number"),
    ({"rope_theta": "1e4"}, r"rope_theta: got '1e4', expected a positive number"),
    ({"rope_heads": "half"}, r"rope_heads: got 'half', expected 'first' or 'all'"),
    ({"enc_dilations": [1, 2]}, r"enc_channels: got .*, expected as many entries as kernels"),
    ({"enc_channels": [8, 8, 8, 8, 25]}, r"expected a last entry that is the sum of the middle ones"),
    ({"enc_res2net_scale": 3}, r"enc_res2net_scale: got 3, expected a divisor of enc_channels"),
    ({"enc_channels": [10, 8, 8, 8, 24]}, r"expected equal entries up to the last; the blocks are residual"),
]
VOCODER_REFUSALS = [
    ({"upsample_rates": []}, r"upsample_kernel_sizes: got .*, expected one kernel for each of upsample_rates \(\)"),
    ({"upsample_rates": [5, 3]}, r"expected one kernel for each of upsample_rates \(5, 3\)"),
    ({"upsample_kernel_sizes": [11, 7, 4, 4, 4, 3]}, r"expected kernel >= rate and kernel - rate even for rates"),
    ({"upsample_kernel_sizes": [3, 7, 4, 4, 4, 4]}, r"expected kernel >= rate and kernel - rate even for rates"),
    ({"resblock_dilation_sizes": [[1, 3, 5]]}, r"expected one list for each of resblock_kernel_sizes \(3, 7, 11\)"),
    ({"resblock_dilation_sizes": [[1, 3, 5], [1, 3], [1, 3, 5]]}, r"got \[1, 3\], expected three integers >= 1"),
    ({"resblock_kernel_sizes": [3, 7, 10]}, r"resblock_kernel_sizes: got .*, expected odd kernels"),
    ({"upsample_initial_channel": 1504}, r"upsample_initial_channel: got 1504, expected a multiple of 2\^6"),
]
TOP_REFUSALS = [
    ({}, r"got no token2wav_config with dit_config and bigvgan_config; expected the configuration of a model with"),
    ({"token2wav_config": None}, r"got no token2wav_config"),
    ({"token2wav_config": {"dit_config": {}}}, r"got no token2wav_config"),
    ({"dit_config": [], "bigvgan_config": {}}, r"dit_config: got list, expected an object of settings"),
    ({"dit_config": {}, "bigvgan_config": None}, r"bigvgan_config: got NoneType, expected an object of settings"),
    ({"dit_config": {"mel_dim": 40}, "bigvgan_config": {}}, r"mel_dim: got 40 in dit_config and 80 in bigvgan_config"),
    ({"dit_config": {}, "bigvgan_config": {}, "blockwave": 1}, r"blockwave: got int, expected an object of settings"),
    ({"dit_config": {}, "bigvgan_config": {}, "blockwave": {"family": ""}}, r"blockwave\.family: got '', expected"),
    (
        {"dit_config": {}, "bigvgan_config": {}, "blockwave": {"default_voice": 3}},
        r"blockwave\.default_voice: got 3, expected the name of a voice",
    ),
]


@pytest.mark.parametrize(("settings", "message"), DIT_REFUSALS)
def test_a_contradiction_in_the_transformer_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        read(settings)


@pytest.mark.parametrize(("settings", "message"), VOCODER_REFUSALS)
def test_a_contradiction_in_the_vocoder_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        read(vocoder=settings)


@pytest.mark.parametrize(("settings", "message"), TOP_REFUSALS)
def test_a_file_of_another_kind_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        Token2WavConfig.from_dict(settings)
