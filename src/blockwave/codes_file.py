# SPDX-License-Identifier: Apache-2.0
"""Speech codes at rest: a documented JSON that says what they belong to, and the plain formats others write.

The JSON is an object; all but ``codes`` may be null or absent::

    {"codes": [3380, 1835, ...], "family": "qwen2.5-omni", "rate": 50, "codebook": "<hash>", "text": "..."}

``family`` names the model family whose talker or encoder made the codes, ``rate`` is codes per second, ``codebook``
the hash of the codebook they index, ``text`` what they say. A bare list of codes is read too.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import MAX_FILE_BYTES, read_bytes, read_json, read_npy, read_npz, read_text
from .codes import as_integers
from .config import Token2WavConfig
from .errors import CodesError
from .voice import write_atomically

SUFFIXES = (".json", ".npy", ".npz", ".txt", ".safetensors")
_WHAT = "speech codes"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_KEYS = ("codes", "family", "rate", "codebook", "text")


@dataclass(frozen=True, eq=False)
class CodesFile:
    """Speech codes and what they belong to.

    Attributes:
        codes: int64 [N], as they were made: special ids may be among them.
        family: model family, or None where the file does not say.
        rate: codes per second, or None.
        codebook: hash of the codebook, or None.
        text: what the codes say, or None.
    """

    codes: np.ndarray
    family: str | None = None
    rate: float | None = None
    codebook: str | None = None
    text: str | None = None

    def check_fits(self, config: Token2WavConfig, where: str = "codes") -> None:
        """Refuses codes that another checkpoint's codebook has to decode. What the file does not say is not checked.

        Raises:
            CodesError: family, rate or codebook differ from the checkpoint's.
        """
        rate = config.clock.codes_per_second
        for what, got, expected in (
            ("family", self.family, config.family.name),
            ("codebook", self.codebook, config.codebook),
            ("rate", self.rate, rate),
        ):
            if got is not None and expected is not None and got != expected:
                raise CodesError(
                    f"{where}: got codes of {what} {got!r}, expected {expected!r} as the checkpoint's; the same "
                    "numbers mean other sounds there; use the checkpoint that these codes were made for"
                )

    def to_json(self) -> str:
        """The documented JSON on one line."""
        rate = int(self.rate) if self.rate is not None and self.rate == int(self.rate) else self.rate
        values = (self.codes.tolist(), self.family, rate, self.codebook, self.text)
        return json.dumps(dict(zip(_KEYS, values, strict=True)), ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the documented JSON (beside, then renamed) and returns its path."""
        path = Path(path)
        write_atomically(path, self.to_json().encode())
        return path


def load_codes(path: str | os.PathLike[str]) -> CodesFile:
    """Reads codes by the file's suffix.

    json: see above. txt: ids separated by white space or commas. npy: [N] or [1, N] integers. npz and safetensors: the
    array ``codes``, or the only one; safetensors may carry family, rate, codebook and text as metadata.

    Raises:
        CodesError: missing, empty, broken, of an unknown suffix, or no integers. Ids are not checked here: which
            are legal is the checkpoint's business.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise CodesError(f"{path}: got suffix {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
    data, where = read_bytes(path, CodesError, _WHAT), str(path)
    if suffix in (".json", ".txt"):
        return parse_codes(data, where)
    if suffix == ".npy":
        return _make(read_npy(data, where, CodesError), {}, where)
    if suffix == ".npz":
        arrays = read_npz(data, where, CodesError)
        return _make(arrays[_only(list(arrays), where)], {}, where)
    return _safetensors(path)


def parse_codes(data: bytes, where: str = "codes") -> CodesFile:
    """Reads JSON, or ids separated by white space or commas: what begins with a bracket is JSON.

    Raises:
        CodesError: as :func:`load_codes`.
    """
    if len(data) > MAX_FILE_BYTES:
        raise CodesError(f"{where}: got more than {MAX_FILE_BYTES} bytes, expected {_WHAT}; is it another file?")
    text = read_text(data, where, CodesError).strip()
    if not text:
        raise CodesError(f"{where}: got nothing, expected {_WHAT}")
    if text[0] not in "[{":
        return _make([_integer(item, i, where) for i, item in enumerate(re.split(r"[\s,]+", text))], {}, where)
    value = read_json(text, where, CodesError)
    if isinstance(value, list):
        return _make(value, {}, where)
    if "codes" not in value:
        raise CodesError(f"{where}: got an object with {sorted(value)[:8]}, expected one with codes, or a bare list")
    return _make(value["codes"], value, where)


def _integer(item: str, position: int, where: str) -> int:
    if not _INTEGER.fullmatch(item):
        raise CodesError(f"{where}: got {item[:40]!r} as item {position}, expected an integer")
    return int(item)


def _make(codes: Any, about: dict[str, Any], where: str) -> CodesFile:
    array = as_integers(codes, where)
    if array.ndim == 2 and len(array) == 1:
        array = array[0]
    if array.ndim == 2:
        raise CodesError(f"{where}: got {len(array)} sequences, expected one; write a file for each")
    for key in ("family", "codebook", "text"):
        if about.get(key) is not None and not isinstance(about[key], str):
            raise CodesError(f"{where}: got {key} {about[key]!r}, expected text or null")
    rate = about.get("rate")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float)):
        raise CodesError(f"{where}: got rate {rate!r}, expected codes per second as a number, or null")
    return CodesFile(array, about.get("family"), rate, about.get("codebook"), about.get("text"))


def _safetensors(path: Path) -> CodesFile:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            about: dict[str, Any] = dict(file.metadata() or {})
            name = _only(list(file.keys()), str(path))
            dtype = file.get_slice(name).get_dtype()
            if dtype[0] not in "IU":
                raise CodesError(f"{path}: got {dtype} values, expected integers; convert them where they are made")
            codes = file.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise CodesError(f"{path}: not a safetensors file ({error}); expected {_WHAT}") from None
    if "rate" in about:
        about["rate"] = _number(about["rate"], path)
    return _make(codes, about, str(path))


def _number(text: str, path: Path) -> float:
    try:
        return float(text)
    except ValueError:
        raise CodesError(f"{path}: got rate {text!r}, expected codes per second as a number") from None


def _only(names: list[str], where: str) -> str:
    if "codes" in names:
        return "codes"
    if len(names) != 1:
        raise CodesError(f"{where}: got arrays {sorted(names)[:8]}, expected one named codes, or only one")
    return names[0]
