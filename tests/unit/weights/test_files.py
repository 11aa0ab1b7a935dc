# SPDX-License-Identifier: Apache-2.0
"""Folders, indexes, shards and links: what is opened, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from blockwave.errors import CheckpointError, ConfigError
from blockwave.testing import sized_config
from blockwave.weights.keymap import keymap
from blockwave.weights.load import load_into
from tests.unit.weights.loading import BIAS, INDEX, assert_same, loaded, modules, refused, rewrite_index


def test_no_folder(tmp_path: Path) -> None:
    refused(tmp_path / "none", "none/config.json: no such file; expected the JSON of a checkpoint")
    config = sized_config()
    with pytest.raises(CheckpointError, match="none: no such folder; expected a folder with config"):
        load_into(*modules(config), tmp_path / "none", config)


def test_no_weights(single: Path, tmp_path: Path) -> None:
    shutil.copy(single / "config.json", tmp_path)
    refused(tmp_path, "got neither model.safetensors.index.json nor model.safetensors; expected a folder with")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"token2wav_config": ', "broken JSON"),
        (b"\xff\xfe\x00", "no UTF-8 text"),
        (b"[1, 2]", "got list, expected a JSON object"),
        (b"", "got an empty file"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_broken_json(sharded: Path, tmp_path: Path, content: bytes, text: str) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    for file in ("config.json", INDEX):
        good = (folder / file).read_bytes()
        (folder / file).write_bytes(content)
        refused(folder, file, text)
        (folder / file).write_bytes(good)


def test_a_fault_in_the_configuration_names_the_file(single: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen2_5_omni"}')
    refused(tmp_path, f"{tmp_path / 'config.json'}: ", "no token2wav_config", kind=ConfigError)


def test_missing_shards_are_all_named_with_what_they_hold(sharded: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    (folder / "model-00002-of-00004.safetensors").unlink()
    (folder / "model-00004-of-00004.safetensors").unlink()
    error = refused(folder, "download these files, the other shards are not needed")
    found = re.findall(r"(model-\d+-of-\d+\.safetensors) \((\d+) tensors\)", str(error))
    assert [file for file, _ in found] == ["model-00002-of-00004.safetensors", "model-00004-of-00004.safetensors"]
    held = len(load_file(folder / "model-00003-of-00004.safetensors")) - 1  # and one of the talker
    assert sum(int(count) for _, count in found) == len(keymap(sized_config())) - held


@pytest.mark.parametrize(
    "file", ["../model.safetensors", "/etc/passwd", "a/../../b", "C:\\x", "..\\x", "", ".", 7, None]
)
def test_names_that_leave_the_folder_are_refused(sharded: Path, tmp_path: Path, file: object) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    rewrite_index(folder, lambda index: index["weight_map"].update({BIAS: file}))
    refused(folder, f"{INDEX}: {BIAS} is in file {file!r}, expected a file name inside the folder")


def test_shards_may_lie_deeper_in_the_folder(sharded: Path, tmp_path: Path, values: dict[str, Tensor]) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    (folder / "parts").mkdir()
    for file in folder.glob("*.safetensors"):
        file.rename(folder / "parts" / file.name)
    rewrite_index(
        folder, lambda index: index.update(weight_map={k: f"parts/{v}" for k, v in index["weight_map"].items()})
    )
    assert_same(loaded(folder), values)


@pytest.mark.parametrize("weight_map", [None, [], "x"])
def test_an_index_without_a_map(sharded: Path, tmp_path: Path, weight_map: object) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    rewrite_index(folder, lambda index: index.update(weight_map=weight_map))
    refused(folder, "got no weight_map, expected tensor names with the file that holds each")


def test_a_checkpoint_without_this_stage(sharded: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    rewrite_index(folder, lambda index: index.update(weight_map={"thinker.a": "model-00001-of-00004.safetensors"}))
    text = "got no tensor of a Token2Wav stage (found thinker), expected names under token2wav."
    refused(folder, text)
    (folder / INDEX).unlink()
    save_file({"thinker.a": torch.ones(2)}, folder / "model.safetensors")
    refused(folder, text)


def test_the_index_decides_which_copy_counts(sharded: Path, tmp_path: Path, values: dict[str, Tensor]) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    holder = json.loads((folder / INDEX).read_text())["weight_map"][BIAS]
    for file in folder.glob("model-0000[234]*.safetensors"):
        if file.name != holder:
            save_file({**load_file(file), BIAS: torch.zeros(80)}, file)
    assert_same(loaded(folder), values)


def test_a_shard_that_lacks_what_the_index_promises(sharded: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sharded, tmp_path / "copy")
    file = folder / json.loads((folder / INDEX).read_text())["weight_map"][BIAS]
    tensors = load_file(file)
    del tensors[BIAS]
    save_file(tensors, file)
    refused(folder, "1 missing", BIAS.removeprefix("token2wav."))


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_truncated_file(single: Path, tmp_path: Path, kept: int) -> None:
    folder = shutil.copytree(single, tmp_path / "copy")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    refused(folder, "model.safetensors: cannot be read as safetensors", "an interrupted download", "download it again")


def test_a_git_lfs_pointer(single: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(single, tmp_path / "copy")
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    refused(folder, "a Git LFS pointer looks like this")


def test_a_dangling_link_to_the_index_is_named(single: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(single, tmp_path / "copy")
    (folder / INDEX).symlink_to("nowhere")
    refused(folder, f"{INDEX}: no such file")
