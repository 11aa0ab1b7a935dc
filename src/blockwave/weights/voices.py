# SPDX-License-Identifier: Apache-2.0
"""The voices of a checkpoint: ``spk_dict.pt`` as released, and small files in ``voices/``."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..config import DiTConfig
from ..errors import VoiceError
from ..voice import Voice

SPEAKERS_FILE = "spk_dict.pt"
VOICES_FOLDER = "voices"

_SOURCES = (
    f"voices come from {SPEAKERS_FILE} or {VOICES_FOLDER}/*.safetensors in the checkpoint, or from Voice.load(path)"
)


def load_voices(folder: str | os.PathLike[str]) -> dict[str, Voice]:
    """All voices of a checkpoint folder by name; empty where it has none.

    Raises:
        VoiceError: a file that is broken, holds code, or two voices whose names differ only in case.
    """
    folder, voices = Path(folder), {}
    speakers = folder / SPEAKERS_FILE
    found = [(speakers, voice) for voice in read_speakers(speakers)] if speakers.exists() else []
    found += [(path, Voice.load(path)) for path in sorted((folder / VOICES_FOLDER).glob("*.safetensors"))]
    for path, voice in found:
        known = {name.casefold(): name for name in voices}
        if voice.name.casefold() in known:
            raise VoiceError(
                f"{path}: got a second voice {voice.name}, beside {known[voice.name.casefold()]}; "
                "expected names that differ, upper and lower case are the same; rename one"
            )
        voices[voice.name] = voice
    return voices


def find_voice(voices: Mapping[str, Voice], name: str | None, default: str | None) -> Voice:
    """The voice asked for, in any case; without a name the checkpoint's declared ``default``.

    Raises:
        VoiceError: unknown (known ones are listed), or neither a name nor a default.
    """
    known = ", ".join(sorted(voices)) or "none"
    if name is None and default is None:
        raise VoiceError(
            f"voice: none named and this checkpoint declares no default, expected one of: {known}; {_SOURCES}"
        )
    wanted = default if name is None else name
    if not isinstance(wanted, str):
        raise VoiceError(f"voice: got {type(wanted).__name__}, expected a name, one of: {known}; {_SOURCES}")
    for voice in voices.values():
        if voice.name.casefold() == wanted.strip().casefold():
            return voice
    if name is None:
        raise VoiceError(
            f"voice: none named and the checkpoint's default {wanted} is not among its voices, "
            f"expected one of: {known}; {_SOURCES}"
        )
    raise VoiceError(f"voice: got {wanted!r}, expected one of: {known}; {_SOURCES}")


def check_voice(voice: Voice, config: DiTConfig) -> None:
    """Checks that a voice fits a checkpoint: width of the x-vector, mel bins and shortest reference.

    Raises:
        VoiceError: it does not.
    """
    if len(voice.xvector) != config.xvector_dim:
        raise VoiceError(
            f"voice {voice.name}: got an x-vector of {len(voice.xvector)} values, expected {config.xvector_dim}; "
            "use a voice made for this checkpoint"
        )
    frames, bins = voice.reference_mel.shape
    if bins != config.mel_dim:
        hint = "; it looks transposed, frames come first" if frames == config.mel_dim else ""
        raise VoiceError(
            f"voice {voice.name}: got a reference mel of {bins} bins, expected {config.mel_dim}{hint}; "
            "make it as [frames, bins] with the checkpoint's mel settings"
        )
    shortest = config.speaker.min_frames
    if frames < shortest:
        raise VoiceError(
            f"voice {voice.name}: got a reference mel of {frames} frames, expected at least {shortest}: the speaker "
            "encoder pads by reflection; use a longer reference, a few seconds are usual"
        )


def read_speakers(path: Path) -> list[Voice]:
    """All voices of a released ``spk_dict.pt``; nothing in it is run.

    Raises:
        VoiceError: broken, with code in it, or of another structure.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise VoiceError(
            f"{path}: refused, its pickle asks for more than tensors and plain values ({_first_line(error)}); "
            "loading it would run code from the file; expected a dictionary of tensors, "
            "get the file from its original source"
        ) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise VoiceError(
            f"{path}: cannot be read ({_first_line(error)}); expected a file written by torch.save; download it again"
        ) from None
    if not isinstance(content, dict):
        raise VoiceError(f"{path}: got {type(content).__name__}, expected a dictionary of speakers; {_SOURCES}")
    return [_speaker(path, name, entry) for name, entry in content.items()]


def _speaker(path: Path, name: object, entry: Any) -> Voice:
    if not isinstance(name, str) or not isinstance(entry, dict) or not {"cond", "ref_mel"} <= entry.keys():
        got = sorted(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
        raise VoiceError(
            f"{path}: speaker {name!r} has {got}, expected cond [1, 192] and ref_mel [1, T, 80] under a name"
        )
    for key in ("cond", "ref_mel"):
        if not isinstance(entry[key], torch.Tensor):
            raise VoiceError(
                f"{path}: speaker {name!r} has {key} of type {type(entry[key]).__name__}, expected a tensor"
            )
    return Voice(name, entry["cond"], entry["ref_mel"])


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
