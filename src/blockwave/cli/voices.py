# SPDX-License-Identifier: Apache-2.0
"""``blockwave voices``: list, show, check, convert."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .streams import note, put_json, put_table

if TYPE_CHECKING:
    from ..voice import Voice

voices = typer.Typer(help="The voices of a checkpoint, and voice files.")
# Reference mels have 100 frames a second (16 kHz, hop 160) in every checkpoint.
_FRAMES_PER_S = 100


@voices.command("list")
def list_voices(model: options.Model = None, json: options.Json = False) -> None:
    """List the voices of a checkpoint."""
    from ..weights.voices import load_voices

    folder, config = options.open_checkpoint(model)
    found = load_voices(folder)
    default = (config.default_voice or "").casefold()
    entries = [_summary(voice) | {"default": voice.name.casefold() == default} for voice in found.values()]
    if json:
        put_json({"checkpoint": str(folder), "voices": entries}, indent=2)
        return
    rows = [(str(e["name"]), f"{e['reference_s']:.2f} s", "default" if e["default"] else "") for e in entries]
    put_table(str(folder), rows, ("voice", "reference", ""))


@voices.command("show")
def show_voice(
    voice: Annotated[str, typer.Argument(help="Name of a voice, or a voice file.")],
    model: options.Model = None,
    json: options.Json = False,
) -> None:
    """Show what is in a voice."""
    if _is_file(voice):
        from ..voice import Voice

        found = Voice.load(voice)
    else:
        folder, config = options.open_checkpoint(model)
        found = options.find_voice(voice, folder, config)
    mel, content = found.reference_mel, _summary(found)
    content |= {
        "xvector_norm": float((found.xvector.astype("f8") ** 2).sum() ** 0.5),
        "reference_min": float(mel.min()),
        "reference_mean": float(mel.mean()),
        "reference_max": float(mel.max()),
        "info": dict(found.info),
    }
    if json:
        put_json(content, indent=2)
        return
    put_table(found.name, [(key.replace("_", " "), _text(value)) for key, value in content.items()])


@voices.command("check")
def check_voices(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Voice files.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Also check that they fit this checkpoint.")
    ] = None,
) -> None:
    """Check voice files: readable, finite, of the right shapes, and fit for a checkpoint."""
    from ..voice import Voice
    from ..weights.voices import check_voice

    config = None if model is None else options.open_checkpoint(model)[1]
    for file in files:
        voice = Voice.load(file)
        if config is not None:
            check_voice(voice, config.dit)
        note(f"{file}: {voice.name} can be used" + ("" if model is None else f" and fits {model}"))


@voices.command("convert")
def convert_voice(
    source: Annotated[
        Path, typer.Argument(help="spk_dict.pt, or xvector and reference_mel in json or npz, or a voice file.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Voice file to write: NAME.safetensors.")],
    speaker: Annotated[str | None, typer.Option(help="Which of several speakers in SOURCE.")] = None,
    name: Annotated[str | None, typer.Option(help="Another name for the voice.")] = None,
) -> None:
    """Make a voice file: a small safetensors file that --voice takes.

    The encoder that made the x-vectors of Qwen2.5-Omni's voices is not public: x-vectors come from existing voices.
    """
    from ..errors import VoiceError
    from ..weights.voice_sources import choose_voice

    if out.suffix != ".safetensors":
        raise VoiceError(f"voice {out}: got suffix {out.suffix!r}, expected .safetensors")
    voice = choose_voice(source, speaker)
    path = replace(voice, name=voice.name if name is None else name).save(out)
    note(f"{path}: voice {name or voice.name}, {len(voice.reference_mel) / _FRAMES_PER_S:.2f} s of reference")


def _summary(voice: Voice) -> dict[str, Any]:
    frames, bins = voice.reference_mel.shape
    return {
        "name": voice.name,
        "xvector": len(voice.xvector),
        "reference_frames": frames,
        "reference_bins": bins,
        "reference_s": frames / _FRAMES_PER_S,
    }


def _is_file(voice: str) -> bool:
    return voice.endswith(".safetensors") or Path(voice).is_file()


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
