# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import math
import re
import weakref
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from blockwave.errors import OptionError
from blockwave.testing import random_dit, sized_config
from blockwave.weights import make
from blockwave.weights.keymap import shapes
from blockwave.weights.load import load_config
from blockwave.weights.make import make_checkpoint
from blockwave.weights.presets import config_json
from blockwave.weights.random_values import random_tensor


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_shards_index_and_other_stages(sharded: Path) -> None:
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    files = sorted(sharded.glob("model-*.safetensors"))
    assert [file.name for file in files] == [f"model-0000{i}-of-00004.safetensors" for i in (1, 2, 3, 4)]
    total = 0
    for file in files:
        tensors = load_file(file)
        assert set(tensors) == {name for name, holder in index["weight_map"].items() if holder == file.name}
        assert any(name.startswith(("thinker.", "talker.")) for name in tensors)
        assert any(name.startswith("token2wav.") for name in tensors) is (file != files[0])
        total += sum(value.nbytes for value in tensors.values())
    assert index["metadata"]["total_size"] == total
    ours = {name for name in index["weight_map"] if name.startswith("token2wav.")}
    assert ours == {f"token2wav.{name}" for name in shapes(load_config(sharded))}


def test_one_shard_has_no_index(single: Path) -> None:
    assert sorted(content(single)) == ["config.json", "model.safetensors", "spk_dict.pt"]


def test_values_do_not_depend_on_shards(single: Path, sharded: Path) -> None:
    whole = load_file(single / "model.safetensors")
    for file in sharded.glob("*.safetensors"):
        for name, value in load_file(file).items():
            assert torch.equal(value, whole[name]), name


def test_the_same_arguments_give_the_same_files(single: Path, tmp_path: Path) -> None:
    again, other = make_checkpoint(tmp_path / "again"), make_checkpoint(tmp_path / "other", seed=1)
    assert content(again) == content(single)
    assert content(other)["model.safetensors"] != content(single)["model.safetensors"]


def test_random_numbers_of_the_process_are_not_touched(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    make_checkpoint(tmp_path / "made")
    assert torch.equal(torch.randn(3), expected)


def test_both_generations_of_keys_mean_the_same(tmp_path: Path, single: Path) -> None:
    older = make_checkpoint(tmp_path / "older", older_keys=True)
    dit = json.loads((older / "config.json").read_text())["token2wav_config"]["dit_config"]
    assert {"dim", "depth", "heads"} <= dit.keys()
    assert not {"hidden_size", "num_hidden_layers", "num_attention_heads"} & dit.keys()
    assert load_config(older) == load_config(single)
    assert load_config(single).random


def test_speakers(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", voices=("Chelsie", "Ethan", "Ada"))
    speakers = torch.load(folder / "spk_dict.pt", weights_only=True)
    assert {name: speaker["bos_token"] for name, speaker in speakers.items()} == {
        "Chelsie": 151872,
        "Ethan": 151870,
        "Ada": 151875,
    }
    assert [speaker["ref_mel"].shape[1] for speaker in speakers.values()] == [400, 300, 350]
    assert all(speaker["cond"].shape == (1, 192) for speaker in speakers.values())
    for speaker in speakers.values():
        assert math.log(1e-5) - 1e-5 < speaker["ref_mel"].min() < speaker["ref_mel"].max() <= 2
    assert "spk_dict.pt" not in content(make_checkpoint(tmp_path / "mute", voices=()))


def test_the_full_preset_is_the_released_configuration() -> None:
    full = config_json("full")["token2wav_config"]
    config = sized_config("full")
    assert (config.dit.hidden_size, config.dit.num_layers, config.dit.num_heads, config.dit.head_dim) == (
        1024,
        22,
        16,
        64,
    )
    assert (config.dit.look_backward_layers, config.dit.look_ahead_layers) == ((0, 20), (10,))
    assert full["bigvgan_config"]["upsample_initial_channel"] == 1536
    assert config.clock.samples_per_code == 480


@pytest.mark.parametrize("size", ["tiny", "small", "full"])
def test_every_size_makes_24_khz_and_speaks_the_codes_of_its_family(size) -> None:
    config = sized_config(size)
    assert (config.clock.samples_per_code, config.dit.num_embeds, config.dit.xvector_dim) == (480, 8193, 192)
    assert {config.dit.reach(i) for i in range(config.dit.num_layers)} == {(0, 0), (1, 0), (0, 1)}


# Folders


def test_a_folder_that_is_not_empty_is_kept(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    for overwrite, text in (
        (False, "not empty; choose another one"),
        (True, "holds letter, which no checkpoint of ours"),
    ):
        with pytest.raises(OptionError, match=text):
            make_checkpoint(tmp_path, overwrite=overwrite)
    assert content(tmp_path) == {"letter": b"dear"}


def test_an_empty_folder_is_filled_and_missing_parents_are_made(tmp_path: Path, single: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert content(make_checkpoint(tmp_path / "empty")) == content(single)
    assert content(make_checkpoint(tmp_path / "a" / "b")) == content(single)


def test_overwriting_leaves_no_old_shard(tmp_path: Path, single: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", shards=3)
    assert content(make_checkpoint(folder, overwrite=True)) == content(single)


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_checkpoint(tmp_path / "made")
    before = content(folder)

    def full_disk(*_: object) -> Tensor:
        raise OSError("no space left")

    monkeypatch.setattr(make, "random_tensor", full_disk)
    with pytest.raises(OSError, match="no space"):
        make_checkpoint(folder, seed=9, overwrite=True)
    assert content(folder) == before
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(
        OptionError, match="got a file, expected a folder to write a checkpoint into; choose another name"
    ):
        make_checkpoint(tmp_path / "file")


@pytest.mark.parametrize("shards", [0, -1, 100])
def test_number_of_shards(tmp_path: Path, shards: int) -> None:
    with pytest.raises(OptionError, match=f"shards: got {shards}, expected 1 to 99"):
        make_checkpoint(tmp_path / "x", shards=shards)


def test_an_unknown_size(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="size: got 'huge', expected one of full, small, tiny"):
        make_checkpoint(tmp_path / "x", "huge")  # type: ignore[arg-type]
    assert not (tmp_path / "x").exists()


def test_one_tensor_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tensor is let go before the next is drawn, whatever the number of shards."""
    last: list[weakref.ref[Tensor]] = []

    def watched(*arguments) -> Tensor:
        assert not any(ref() is not None for ref in last), "two tensors at once"
        value = random_tensor(*arguments)
        last[:] = [weakref.ref(value)]
        return value

    monkeypatch.setattr(make, "random_tensor", watched)
    make_checkpoint(tmp_path / "made")
    assert last


# Values


def draw(pattern: str, size="small") -> dict[str, Tensor]:
    config = sized_config(size)
    return {n: random_tensor(n, s, config, 0) for n, s in shapes(config).items() if re.search(pattern, n)}


def test_gates_are_open() -> None:
    for bias in draw(r"attn_norm\.linear\.bias").values():
        gates = bias.view(6, -1)[[2, 5]]
        assert gates.abs().eq(1).all()
        assert -0.3 < gates.mean() < 0.3


def test_the_input_does_not_see_the_level_of_the_mel() -> None:
    (weight,) = draw(r"input_embed\.proj\.weight").values()
    assert weight[:, :80].sum(1).abs().max() < 1e-5
    assert weight[:, :80].std() > 0.01


def test_the_last_filter_has_no_constant_part() -> None:
    (weight,) = draw(r"conv_post").values()
    assert weight.sum(2).abs().max() < 1e-6


def test_every_tensor_varies() -> None:
    """Nothing is zero or constant, so that a tensor in the wrong place is seen."""
    for name, value in draw("", "tiny").items():
        assert value.shape == shapes(sized_config("tiny"))[name]
        assert value.dtype == torch.float32
        assert value.isfinite().all()
        assert value.numel() == 1 or value.std() > 1e-4, name


def test_an_unknown_tensor_has_no_values() -> None:
    with pytest.raises(KeyError, match="mystery"):
        random_tensor("mystery", (1,), sized_config(), 0)


def test_the_speaker_encoder_tells_silence_from_a_voice(single: Path, values: dict[str, Tensor]) -> None:
    """ECAPA of zeros is the unconditional branch: neither zero nor what a reference gives, nor two references alike."""
    encoder = random_dit(load_config(single)).speaker
    speakers = torch.load(single / "spk_dict.pt", weights_only=True)
    with torch.no_grad():
        chelsie, ethan = (encoder(speakers[name]["ref_mel"]) for name in ("Chelsie", "Ethan"))
        silence = encoder(torch.zeros(1, 400, 80))

    def size(x: Tensor) -> float:
        return math.sqrt(x.square().mean())

    assert 0.5 < size(chelsie) < 5
    assert size(silence) > 0.2
    assert size(chelsie - silence) > 0.5
    assert size(chelsie - ethan) > 0.1
