# SPDX-License-Identifier: Apache-2.0
"""One tiny checkpoint, and ways to spoil a copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from blockwave.weights.make import make_checkpoint

Edit = Callable[[dict[str, Tensor]], object]


@pytest.fixture(scope="session")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four shards; the first holds other stages only. Not to be changed."""
    return make_checkpoint(tmp_path_factory.mktemp("weights") / "sharded", "tiny", shards=4)


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tensors in one file. Not to be changed."""
    return make_checkpoint(tmp_path_factory.mktemp("weights") / "single", "tiny")


@pytest.fixture
def spoil(single: Path, tmp_path: Path) -> Callable[[Edit], Path]:
    """A copy of ``single`` whose tensors went through ``edit``."""

    def spoiled(edit: Edit) -> Path:
        folder = tmp_path / "spoiled"
        shutil.copytree(single, folder)
        tensors = load_file(folder / "model.safetensors")
        edit(tensors)
        save_file(tensors, folder / "model.safetensors")
        return folder

    return spoiled


@pytest.fixture(scope="session")
def values(single: Path) -> dict[str, Tensor]:
    """All tensors of the checkpoint as the file has them, without the prefix of whole models."""
    return {
        name.removeprefix("token2wav."): value
        for name, value in load_file(single / "model.safetensors").items()
        if name.startswith("token2wav.") and value.dtype == torch.float32
    }
