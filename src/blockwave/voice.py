# SPDX-License-Identifier: Apache-2.0
"""A voice: an x-vector and a reference mel, as a small file that users can make, check and share.

The encoder that made the x-vectors of Qwen2.5-Omni's voices is not public: a new x-vector for that model cannot be
computed from sound with public tools. Reference mels can.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .errors import VoiceError

_FORMAT = "blockwave-voice-1"
_DTYPES = {"F16", "F32", "F64"}  # what numpy reads of the dtypes that a voice may come in
_RESERVED = {"format", "name"}  # what a file's metadata holds beside info


@dataclass(frozen=True, eq=False)
class Voice:
    """One speaker.

    Attributes:
        name: how the voice is asked for, case-insensitively.
        xvector: float32 [192] (``enc_emb_dim`` of the checkpoint), finite.
        reference_mel: float32 [T, M], frames first; natural log of a magnitude mel at 100 frames per second, finite.
        info: free text that travels with the file (licence, source).
    """

    name: str
    xvector: np.ndarray
    reference_mel: np.ndarray
    info: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise VoiceError(f"voice: got name {self.name!r}, expected text")
        if not all(isinstance(text, str) for item in self.info.items() for text in item) or _RESERVED & set(self.info):
            raise VoiceError(
                f"voice {self.name}: got info {dict(self.info)!r}, expected text under names other than "
                f"{' and '.join(sorted(_RESERVED))}; turn numbers into text"
            )
        object.__setattr__(self, "xvector", _floats(self.name, "xvector", self.xvector, 1))
        object.__setattr__(self, "reference_mel", _floats(self.name, "reference_mel", self.reference_mel, 2))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a safetensors file (beside, then renamed) and returns its path."""
        from safetensors.numpy import save

        path = Path(path)
        arrays = {"xvector": self.xvector, "reference_mel": self.reference_mel}
        data = save(arrays, metadata={"format": _FORMAT, "name": self.name, **self.info})
        write_atomically(path, data)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Voice:
        """Reads a file written by :meth:`save`.

        Raises:
            VoiceError: the file is missing, is no safetensors file, or lacks one of the two arrays.
        """
        from safetensors import SafetensorError, safe_open

        path = Path(path)
        if not path.is_file():
            raise VoiceError(f"voice {path}: no such file; expected a voice in safetensors format")
        try:
            with safe_open(path, "np") as file:
                metadata = dict(file.metadata() or {})
                names = set(file.keys())
                if not {"xvector", "reference_mel"} <= names:
                    raise VoiceError(f"voice {path}: got arrays {sorted(names)}, expected xvector and reference_mel")
                kinds = sorted({file.get_slice(name).get_dtype() for name in ("xvector", "reference_mel")})
                if not set(kinds) <= _DTYPES:
                    raise VoiceError(f"voice {path}: got arrays of {kinds}, expected F32; write it with Voice.save")
                xvector, mel = file.get_tensor("xvector"), file.get_tensor("reference_mel")
        except (SafetensorError, OSError) as error:
            raise VoiceError(f"voice {path}: not a safetensors file ({error}); write it with Voice.save") from None
        metadata.pop("format", None)
        return cls(metadata.pop("name", path.stem), xvector, mel, metadata)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes beside the target and renames, so that a reader never sees half a file."""
    if path.is_symlink():
        path = path.resolve()
    if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe is written, not replaced
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _floats(name: str, what: str, value: Any, ndim: int) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu().float().numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise VoiceError(f"voice {name}: got {what} of type {array.dtype}, expected numbers")
    axes = "[D]" if ndim == 1 else "[T, M], frames first"
    if array.ndim == ndim + 1 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != ndim or array.size == 0:
        raise VoiceError(f"voice {name}: got {what} of shape {list(array.shape)}, expected {axes}")
    array = np.array(array, dtype=np.float32, order="C")  # a copy: a voice does not change after it was made
    if not np.isfinite(array).all():
        raise VoiceError(f"voice {name}: {what} holds NaN or infinity, expected finite numbers")
    array.setflags(write=False)
    return array
