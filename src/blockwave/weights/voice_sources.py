# SPDX-License-Identifier: Apache-2.0
"""Voices out of what people have: a released ``spk_dict.pt``, our own files, or two arrays in JSON or npz."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import read_bytes, read_json, read_npz, read_text
from ..errors import VoiceError
from ..voice import Voice
from .voices import read_speakers

SUFFIXES = (".pt", ".safetensors", ".json", ".npz")
_ARRAYS = ("xvector", "reference_mel")
_WHAT = "a voice"


def read_voices(path: str | os.PathLike[str]) -> list[Voice]:
    """All voices in a file, by its suffix.

    pt: a released dictionary of speakers. safetensors: as :meth:`Voice.save` writes it. npz: arrays ``xvector`` [D] and
    ``reference_mel`` [T, M]. json: an object with these two as lists, and ``name`` and ``info`` if wanted. A voice
    without a name inside is called like its file.

    Raises:
        VoiceError: missing, broken, of an unknown suffix, or without one of the arrays.
    """
    path = Path(path)
    suffix, where = path.suffix.lower(), f"voice {path}"
    if suffix not in SUFFIXES:
        raise VoiceError(f"{where}: got suffix {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
    if suffix == ".safetensors":
        return [Voice.load(path)]
    data = read_bytes(path, VoiceError, _WHAT)
    if suffix == ".pt":
        return read_speakers(path)
    if suffix == ".npz":
        return [_voice(read_npz(data, where, VoiceError), path)]
    return [_voice(read_json(read_text(data, where, VoiceError), where, VoiceError), path)]


def choose_voice(path: str | os.PathLike[str], speaker: str | None = None) -> Voice:
    """The voice of that name in a file, in any case; without a name the only one.

    Raises:
        VoiceError: as :func:`read_voices`, no such speaker, or several and none named.
    """
    voices = read_voices(path)
    known = ", ".join(sorted(voice.name for voice in voices)) or "none"
    if speaker is None:
        if len(voices) != 1:
            raise VoiceError(f"voice {path}: got {len(voices)} speakers, expected one of them named: {known}")
        return voices[0]
    for voice in voices:
        if voice.name.casefold() == speaker.casefold():
            return voice
    raise VoiceError(f"voice {path}: got speaker {speaker!r}, expected one of: {known}")


def _voice(content: Any, path: Path) -> Voice:
    if not isinstance(content, dict) or not set(_ARRAYS) <= content.keys():
        got = sorted(content)[:8] if isinstance(content, dict) else type(content).__name__
        raise VoiceError(f"voice {path}: got {got}, expected xvector and reference_mel")
    info = content.get("info", {})
    if not isinstance(info, dict) or not all(isinstance(value, str) for value in info.values()):
        raise VoiceError(f"voice {path}: got info {info!r}, expected an object of texts")
    name = content.get("name", path.stem)
    try:
        xvector, mel = (np.asarray(content[key]) for key in _ARRAYS)
    except ValueError:
        raise VoiceError(
            f"voice {path}: got rows of unequal length, expected xvector [D], reference_mel [T, M]"
        ) from None
    return Voice(str(name) if isinstance(name, np.ndarray) else name, xvector, mel, info)
