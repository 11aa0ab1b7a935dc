# SPDX-License-Identifier: Apache-2.0
"""numpy's npy and npz, and JSON, read from bytes: nothing is unpickled, nothing larger than its file is allocated."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .errors import BlockwaveError

# A file of codes or a voice is a few hundred kilobytes; far beyond this it is something else.
MAX_FILE_BYTES = 64 * 2**20
Kind = type[BlockwaveError]


def read_bytes(path: str | os.PathLike[str], kind: Kind, what: str) -> bytes:
    """The content of a small file; ``kind`` is the error to raise, ``what`` names the content in its message."""
    path = Path(path)
    try:
        if path.is_dir():
            raise kind(f"{path}: got a folder, expected a file of {what}")
        size = path.stat().st_size
        data = path.read_bytes() if size <= MAX_FILE_BYTES else b""
    except FileNotFoundError:
        raise kind(f"{path}: no such file; expected {what}") from None
    except OSError as error:
        raise kind(f"{path}: cannot be read ({error.strerror}); expected {what}") from None
    if size > MAX_FILE_BYTES:
        raise kind(f"{path}: got {size} bytes, expected {what} of at most {MAX_FILE_BYTES}; is it another file?")
    if not data:
        raise kind(f"{path}: got an empty file, expected {what}")
    return data


def read_text(data: bytes, where: str, kind: Kind) -> str:
    """UTF-8 text, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise kind(f"{where}: got bytes that are no UTF-8 text (at byte {error.start}), expected text") from None


def read_json(text: str, where: str, kind: Kind) -> Any:
    """The value of a JSON text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise kind(f"{where}: broken JSON (nested too deeply)") from None
    except ValueError as error:
        raise kind(f"{where}: broken JSON ({error})") from None


def read_npy(data: bytes, where: str, kind: Kind) -> np.ndarray:
    """The array of a ``.npy`` file."""
    stream = io.BytesIO(data)
    try:
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        version = np.lib.format.read_magic(stream)
        if version not in readers:
            raise kind(f"{where}: got npy version {version}, expected 1.0 or 2.0, as numpy writes numbers")
        shape, _, dtype = readers[version](stream)
    except ValueError as error:
        raise kind(f"{where}: not a npy file ({error})") from None
    if dtype.hasobject:
        raise kind(f"{where}: refused, the array holds pickled objects, which may run code; expected plain numbers")
    needed, present = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if needed > present:
        raise kind(f"{where}: got {present} bytes for an array of {needed}; the file is cut short")
    return np.load(io.BytesIO(data), allow_pickle=False)


def read_npz(data: bytes, where: str, kind: Kind) -> dict[str, np.ndarray]:
    """All arrays of a ``.npz`` file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            size = sum(entry.file_size for entry in entries)
            if size > MAX_FILE_BYTES:
                raise kind(f"{where}: got {size} bytes unpacked, expected at most {MAX_FILE_BYTES}")
            contents = {entry.filename.removesuffix(".npy"): archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise kind(f"{where}: not a npz file ({error})") from None
    return {name: read_npy(content, f"{where}: array {name}", kind) for name, content in contents.items()}
