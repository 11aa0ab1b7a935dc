# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from blockwave.testing import sized_config
from blockwave.velocity import DiT
from blockwave.waveform import BigVGAN
from blockwave.weights.keymap import Slot, is_dropped, keymap, shapes, stage_name

DIT, VOCODER = "code2wav_dit_model.", "code2wav_bigvgan_model."


def test_the_released_sizes_have_the_released_number_of_tensors_and_parameters() -> None:
    expected = shapes(sized_config("full"))
    assert len(expected) == 808
    assert sum(map(math.prod, expected.values())) == 449_051_264
    assert sum(name.startswith(DIT) for name in expected) == 359


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (DIT + "text_embed.codec_embed.weight", (8194, 512)),
        (DIT + "input_embed.proj.weight", (1024, 912)),
        (DIT + "input_embed.spk_encoder.blocks.2.res2net_block.blocks.0.conv.weight", (128, 128, 3)),
        (DIT + "input_embed.spk_encoder.asp.tdnn.conv.weight", (64, 2304, 1)),
        (DIT + "transformer_blocks.21.attn_norm.linear.bias", (6144,)),
        (DIT + "transformer_blocks.0.ff.ff.3.weight", (1024, 2048)),
        (VOCODER + "ups.0.0.weight", (1536, 768, 11)),
        (VOCODER + "resblocks.17.convs2.2.weight", (24, 24, 11)),
        (VOCODER + "resblocks.4.activations.5.act.beta", (384,)),
        (VOCODER + "conv_post.weight", (1, 24, 7)),
    ],
)
def test_released_shapes(name: str, shape: tuple[int, ...]) -> None:
    assert shapes(sized_config("full"))[name] == shape


@pytest.mark.parametrize("size", ["tiny", "full"])
def test_the_table_covers_every_parameter_of_our_modules_once(size) -> None:
    config = sized_config(size)
    with torch.device("meta"):
        modules = {"dit": DiT(config.dit), "vocoder": BigVGAN(config.vocoder)}
    for part, module in modules.items():
        covered: Counter[str] = Counter()
        for slot in keymap(config):
            if slot.part == part:
                assert (slot.first_row or 0) == covered[slot.target], slot  # rows follow each other without a gap
                covered[slot.target] += slot.shape[0]
        assert covered == {name: parameter.shape[0] for name, parameter in module.named_parameters()}


def test_rotary_pairs_of_a_rotated_head_become_halves_and_other_heads_stay() -> None:
    slot = Slot("q", (12,), "dit", "qkv", first_row=4, rotated_heads=2, head_dim=4)
    parameter = torch.full((20,), -1.0)
    slot.store(parameter, torch.arange(12.0))
    assert parameter.tolist() == [-1] * 4 + [0, 2, 1, 3] + [4, 6, 5, 7] + [8, 9, 10, 11] + [-1] * 4


@pytest.mark.parametrize(("rope_heads", "rotated"), [("first", 1), ("all", 4)])
def test_which_heads_are_rotated_comes_from_the_configuration(rope_heads: str, rotated: int) -> None:
    slots = {slot.name: slot for slot in keymap(sized_config(rope_heads=rope_heads))}
    for letter, heads in {"q": rotated, "k": rotated, "v": 0}.items():
        for kind in ("weight", "bias"):
            slot = slots[f"{DIT}transformer_blocks.3.attn.to_{letter}.{kind}"]
            assert (slot.rotated_heads, slot.head_dim) == (heads, 16)


@pytest.mark.parametrize("rope_heads", ["first", "all"])
def test_a_checkpoint_comes_back_unchanged(rope_heads: str) -> None:
    config = sized_config(rope_heads=rope_heads)
    parameters = {"dit": dict(DiT(config.dit).named_parameters())}
    parameters["vocoder"] = dict(BigVGAN(config.vocoder).named_parameters())
    source = {slot.name: torch.randn(slot.shape) for slot in keymap(config)}
    with torch.no_grad():
        for slot in keymap(config):
            slot.store(parameters[slot.part][slot.target], source[slot.name])
        for slot in keymap(config):
            assert torch.equal(slot.fetch(parameters[slot.part][slot.target]), source[slot.name]), slot


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token2wav." + DIT + "proj_out.bias", DIT + "proj_out.bias"),
        (VOCODER + "conv_post.weight", VOCODER + "conv_post.weight"),
        ("token2wav.other", "other"),
        ("thinker.model.embed_tokens.weight", None),
        ("talker.token2wav.weight", None),
    ],
)
def test_whose_tensor_it_is(name: str, expected: str | None) -> None:
    assert stage_name(name) == expected


@pytest.mark.parametrize(
    ("name", "dropped"),
    [
        (DIT + "rotary_embed.inv_freq", True),
        (DIT + "rotary_embed.original_inv_freq", True),
        (VOCODER + "resblocks.0.activations.1.upsample.filter", True),
        (VOCODER + "activation_post.downsample.filter", True),
        (VOCODER + "activation_post.downsample.lowpass.filter", True),
        (VOCODER + "activation_post.act.alpha", False),
        (DIT + "rotary_embed.weight", False),
        (VOCODER + "conv_filter", False),
    ],
)
def test_computed_buffers_are_dropped_by_name(name: str, dropped: bool) -> None:
    assert is_dropped(name) is dropped


def test_no_parameter_is_dropped() -> None:
    assert not [name for name in shapes(sized_config("full")) if is_dropped(name)]
