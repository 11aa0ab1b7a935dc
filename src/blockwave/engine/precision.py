# SPDX-License-Identifier: Apache-2.0
"""float32 that is float32, whatever the process allows: torch can round the inputs of products to TF32 or bfloat16.

On recent NVIDIA GPUs it does so in convolutions unless told otherwise; in matrix products, and on CPUs, if told to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch

_Restore = Callable[[], None]

_lock = Lock()
_inside = 0
_restore: list[_Restore] = []


@contextmanager
def full_float32() -> Iterator[None]:
    """Inside, neither convolutions nor matrix products round their inputs; afterwards all settings are as before.

    The settings are the process's own: the first thread that comes in changes them, the last one that leaves puts them
    back. TF32 keeps 10 bits of the mantissa (NVIDIA A100 whitepaper, 2020).
    """
    global _inside
    with _lock:
        if _inside == 0:
            _restore.extend(_turn_off())
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                while _restore:
                    _restore.pop()()


def _turn_off() -> Iterator[_Restore]:
    """Turns every kind of rounding off; yields how to put it back.

    torch 2.9 gave the settings new names and refuses to read an old one that a new one contradicts (pytorch.org/docs,
    notes/cuda, TensorFloat-32). So whoever used either names finds both as they were.
    """
    backends: Any = torch.backends
    has_new_names = hasattr(backends.cuda.matmul, "fp32_precision")
    products = [backends.cuda.matmul, backends.mkldnn.matmul] if has_new_names else []
    yield _set(products, torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest")
    convolutions = [backends.cudnn.conv, backends.cudnn.rnn] if has_new_names else []
    yield _set(convolutions, lambda: backends.cudnn.allow_tf32, _allow_tf32, False)
    if has_new_names:  # of which these never had old ones
        yield _set([backends.mkldnn.conv, backends.mkldnn.rnn], lambda: None, lambda _: None, None)


def _set(parts: Sequence[Any], get: Callable[[], Any], put: Callable[[Any], None], exact: Any) -> _Restore:
    """Makes ``parts``, by their new names, and what ``put`` sets, by its old name, exact."""
    saved = [part.fp32_precision for part in parts]
    try:
        old = get()
    except RuntimeError:  # contradicted by a new name
        old = None
    if old is not None:
        put(exact)
    for part in parts:
        if part.fp32_precision not in ("ieee", "none"):
            part.fp32_precision = "ieee"

    def restore() -> None:
        if old is not None:
            put(old)
        for part, precision in zip(parts, saved, strict=True):
            if part.fp32_precision != precision:
                part.fp32_precision = precision

    return restore


def _allow_tf32(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = allowed
