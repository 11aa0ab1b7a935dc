# SPDX-License-Identifier: Apache-2.0
"""float32 that is float32: on recent NVIDIA GPUs torch lets cuDNN round convolutions to TF32 unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def full_float32() -> Iterator[None]:
    """Inside, neither convolutions nor matrix products use TF32; afterwards the process's settings are as before.

    TF32 keeps 10 bits of the mantissa (NVIDIA A100 whitepaper, 2020): a thousand times the bound of 1e-5 in places.
    """
    convolutions, products = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = convolutions, products
