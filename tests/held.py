# SPDX-License-Identifier: Apache-2.0
"""What this process holds: every tensor that something still refers to."""

from __future__ import annotations

import gc

import torch
from torch import Tensor


def tensors() -> list[Tensor]:
    """Every tensor that lives, once nothing more can be collected: the finaliser of a stream holds its engine."""
    while gc.collect():
        pass
    return [held for held in gc.get_objects() if issubclass(type(held), torch.Tensor)]


def numbers_held() -> int:
    """How many of them are of floating point numbers. Those of integers, indices of layouts, are kept within bounds."""
    return sum(tensor.is_floating_point() for tensor in tensors())


def tensor_bytes() -> tuple[int, int]:
    """How many there are, and their bytes; a storage that several share is counted once."""
    held = tensors()
    storages = {storage.data_ptr(): storage.nbytes() for storage in (tensor.untyped_storage() for tensor in held)}
    return len(held), sum(storages.values())
