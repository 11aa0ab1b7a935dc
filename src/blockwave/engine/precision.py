# SPDX-License-Identifier: Apache-2.0
"""float32 that is float32: on recent NVIDIA GPUs torch lets cuDNN round convolutions to TF32 unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_inside = 0
_before = (True, True)


@contextmanager
def full_float32() -> Iterator[None]:
    """Inside, neither convolutions nor matrix products use TF32; afterwards the process's settings are as before.

    The settings are the process's own: the first thread that comes in changes them, the last one that leaves puts them
    back. TF32 keeps 10 bits of the mantissa (NVIDIA A100 whitepaper, 2020).
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = _before
