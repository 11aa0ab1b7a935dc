# SPDX-License-Identifier: Apache-2.0
"""Files of every kind, as bytes."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from typing import Any

import numpy as np
import safetensors.numpy

from blockwave.voice import Voice


def js(value: Any) -> bytes:
    return json.dumps(value).encode()


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array, **options))
    return buffer.getvalue()


def npy_header(shape: tuple[int, ...]) -> bytes:
    """A header that promises int64 of ``shape``, with 16 bytes behind it."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + bytes(16)


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(array) for name, array in arrays.items()})
    return buffer.getvalue()


def zip_bomb(size: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("codes.npy", bytes(size))
    return buffer.getvalue()


def tensors(metadata: dict[str, str] | None = None, **arrays: Any) -> bytes:
    return safetensors.numpy.save({name: np.asarray(array) for name, array in arrays.items()}, metadata=metadata)


def voice(xvector: int = 192, frames: int = 60, bins: int = 80, name: str = "Mine") -> bytes:
    made = Voice(name, np.ones(xvector), np.full((frames, bins), -4.0))
    return tensors(
        {"format": "blockwave-voice-1", "name": name}, xvector=made.xvector, reference_mel=made.reference_mel
    )


class _Touch:
    """Unpickling this would create the file ``harm``."""

    def __reduce__(self) -> Any:
        return open, ("harm", "w")


def harmful_pickle() -> bytes:
    return pickle.dumps({"Chelsie": _Touch()})


def harmful_npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([_Touch()], dtype=object), allow_pickle=True)
    return buffer.getvalue()
