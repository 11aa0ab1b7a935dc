# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from blockwave.errors import CheckpointError
from blockwave.testing import sized_config
from blockwave.velocity import DiT
from blockwave.waveform import BigVGAN
from blockwave.weights import load
from blockwave.weights.keymap import keymap
from blockwave.weights.load import TensorsError, load_config, load_into
from tests.unit.weights.loading import BIAS, Q, assert_same, loaded, modules, refused


def test_every_parameter_gets_its_tensor(single: Path, sharded: Path, values: dict[str, Tensor]) -> None:
    assert_same(loaded(single), values)
    assert_same(loaded(sharded), values)


def test_shards_of_other_stages_need_not_exist_and_are_not_opened(
    sharded: Path, tmp_path: Path, values: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    (folder / "model-00001-of-00004.safetensors").unlink()
    read: list[str] = []
    opened: list[str] = []

    def spy(path: Path, framework: str):
        opened.append(path.name)
        return _Spy(real(path, framework), read)

    real = load.safe_open
    monkeypatch.setattr(load, "safe_open", spy)
    assert_same(loaded(folder), values)
    assert opened == [f"model-0000{i}-of-00004.safetensors" for i in (2, 3, 4)]
    assert len(read) == len(values)
    assert all(name.startswith("token2wav.") for name in read)


class _Spy:
    """Notes which tensors are read."""

    def __init__(self, handle, read: list[str]) -> None:
        self.handle, self.read = handle, read

    def __enter__(self):
        self.handle.__enter__()
        return self

    def __exit__(self, *error):
        return self.handle.__exit__(*error)

    def keys(self):
        return self.handle.keys()

    def get_slice(self, name: str):
        return self.handle.get_slice(name)

    def get_tensor(self, name: str):
        self.read.append(name)
        return self.handle.get_tensor(name)


def test_links_of_a_hub_cache_are_followed(sharded: Path, tmp_path: Path, values: dict[str, Tensor]) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for i, file in enumerate(sorted(sharded.iterdir())):
        shutil.copy(file, blobs / f"hash{i}")
        (snapshot / file.name).symlink_to(os.path.join("..", "..", "blobs", f"hash{i}"))
    assert_same(loaded(snapshot), values)


def test_the_stage_alone_needs_no_prefix(spoil, values: dict[str, Tensor]) -> None:
    def strip(tensors: dict[str, Tensor]) -> None:
        for name in list(tensors):
            tensors[name.removeprefix("token2wav.")] = tensors.pop(name)

    assert_same(loaded(spoil(strip)), values)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_width_of_floats_in_the_file(spoil, values: dict[str, Tensor], dtype: torch.dtype) -> None:
    folder = spoil(lambda tensors: tensors.update({name: value.to(dtype) for name, value in tensors.items()}))
    assert_same(loaded(folder), {name: value.to(dtype).float() for name, value in values.items()})


def test_any_width_of_floats_in_the_module(single: Path, values: dict[str, Tensor]) -> None:
    assert_same(loaded(single, torch.bfloat16), {name: value.bfloat16() for name, value in values.items()})


def test_computed_buffers_in_the_file_are_left_there(spoil, values: dict[str, Tensor]) -> None:
    buffers = {
        "token2wav.code2wav_dit_model.rotary_embed.inv_freq": torch.ones(8),
        "token2wav.code2wav_bigvgan_model.activation_post.upsample.filter": torch.ones(1, 1, 12),
    }
    assert_same(loaded(spoil(lambda tensors: tensors.update(buffers))), values)


def test_all_faults_stand_in_one_error(spoil) -> None:
    def edit(tensors: dict[str, Tensor]) -> None:
        del tensors[BIAS]
        tensors["token2wav.code2wav_dit_model.extra"] = torch.ones(3)
        tensors[Q] = tensors[Q].T.contiguous()
        key = Q.replace("to_q", "to_k")
        tensors[key] = tensors[key].to(torch.int32)

    error = refused(
        spoil(edit),
        "1 missing, 1 unexpected, 1 of another shape, 1 of a dtype that is no float",
        "missing: code2wav_dit_model.proj_out.bias [80]",
        "unexpected: code2wav_dit_model.extra [3]",
        "transformer_blocks.1.attn.to_q.weight: got [72, 64], expected [64, 72]",
        "transformer_blocks.1.attn.to_k.weight: got I32, expected one of ['BF16'",
        "check that both come from the same checkpoint",
        kind=TensorsError,
    )
    assert isinstance(error, TensorsError)
    assert {kind: len(lines) for kind, lines in error.problems.items()} == {
        "missing": 1,
        "unexpected": 1,
        "of another shape": 1,
        "of a dtype that is no float": 1,
    }


def test_nothing_is_copied_before_everything_fits(spoil) -> None:
    folder = spoil(lambda tensors: tensors.pop(BIAS))
    config = load_config(folder)
    dit, vocoder = modules(config)
    with pytest.raises(TensorsError):
        load_into(dit, vocoder, folder, config)
    assert all(p.isnan().all() for module in (dit, vocoder) for p in module.parameters())


def test_long_lists_are_counted_and_kept_whole(spoil) -> None:
    def keep_a_few(tensors: dict[str, Tensor]) -> None:
        for name in sorted(name for name in tensors if name.startswith("token2wav."))[5:]:
            del tensors[name]

    total = len(keymap(sized_config()))
    error = refused(spoil(keep_a_few), "missing: ... and", "more")
    assert isinstance(error, TensorsError)
    missing = error.problems["missing"]
    assert len(missing) == total - 5
    assert missing == sorted(missing)
    shown = re.findall(r"^  missing: code2wav", str(error), re.MULTILINE)
    assert len(shown) == 50
    assert f"missing: ... and {total - 5 - 50} more" in str(error)


def test_a_tensor_under_both_names_is_refused(spoil) -> None:
    name = BIAS.removeprefix("token2wav.")
    folder = spoil(lambda tensors: tensors.update({name: tensors[BIAS].clone()}))
    refused(folder, "1 given twice; expected exactly what config.json describes", f"as {name} and {BIAS}")


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_one_value_that_is_no_number_is_found(spoil, value: float) -> None:
    def edit(tensors: dict[str, Tensor]) -> None:
        tensors[Q][5, 7] = value

    refused(
        spoil(edit),
        "1 with NaN or infinity; expected finite numbers after conversion to float32",
        "with NaN or infinity: code2wav_dit_model.transformer_blocks.1.attn.to_q.weight",
    )


def test_an_overflow_of_the_chosen_dtype_is_found_and_named(spoil) -> None:
    def edit(tensors: dict[str, Tensor]) -> None:
        tensors[BIAS][3] = 1e5

    folder = spoil(edit)
    assert loaded(folder)[BIAS.removeprefix("token2wav.")][3] == 1e5
    with pytest.raises(TensorsError, match=r"conversion to float16; load in float32.*\n.*proj_out\.bias"):
        loaded(folder, torch.float16)


def test_huge_but_finite_values_are_no_fault(spoil) -> None:
    """Their sum overflows, which alone proves nothing."""
    folder = spoil(lambda tensors: tensors[BIAS].fill_(3e38))
    assert loaded(folder)[BIAS.removeprefix("token2wav.")].eq(3e38).all()


# Modules


def test_modules_of_another_configuration_are_refused(single: Path) -> None:
    config = load_config(single)
    dit, vocoder = modules(sized_config(num_hidden_layers=6, look_backward_layers=[0, 4]))
    with pytest.raises(
        CheckpointError, match=r"parameter layers\.5\.\S+: got shape .* expected none; build the module"
    ):
        load_into(dit, vocoder, single, config)
    dit, vocoder = modules(sized_config(ff_mult=2))
    with pytest.raises(CheckpointError, match=r"down\.weight: got shape \[72, 144\], expected \[72, 216\]"):
        load_into(dit, vocoder, single, config)
    with pytest.raises(CheckpointError, match=r"parameter \S+: got shape none, expected \["):
        load_into(nn.Module(), vocoder, single, config)


def test_modules_without_memory_are_refused(single: Path) -> None:
    config = load_config(single)
    with torch.device("meta"):
        dit, vocoder = DiT(config.dit), BigVGAN(config.vocoder)
    with pytest.raises(CheckpointError, match=r"got no memory \(meta device\); call module\.to_empty"):
        load_into(dit, vocoder, single, config)
