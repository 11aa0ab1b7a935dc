# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and what their values mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import OptionError

if TYPE_CHECKING:
    from ..config import Token2WavConfig
    from ..voice import Voice

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        "--checkpoint",
        metavar="DIR|ID",
        help="Checkpoint: a folder or a hub id. Without it the voice of the package.",
    ),
]
Preset = Annotated[
    str, typer.Option(help="exact, or fast or faster: fewer evaluations, at a measured distance from the exact sound.")
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable result on standard output.")]


def open_checkpoint(model: str | None) -> tuple[Path, Token2WavConfig]:
    """The folder that --model means, fetched from the hub where it is an id, and its configuration."""
    from ..weights.hub import resolve
    from ..weights.load import load_config

    folder = resolve(model)
    return folder, load_config(folder)


def find_voice(voice: str | None, folder: Path, config: Token2WavConfig) -> Voice:
    """The voice that --voice means: a voice file, a name, or without it the checkpoint's default."""
    from ..voice import Voice
    from ..weights.voices import check_voice, find_voice, load_voices

    if voice is None or not (voice.endswith(".safetensors") or Path(voice).is_file()):
        return find_voice(load_voices(folder), voice, config.default_voice)
    loaded = Voice.load(voice)
    check_voice(loaded, config.dit)
    return loaded


def read_sway(sway: str) -> float | None:
    """--sway: a number or ``none``."""
    if sway.casefold() == "none":
        return None
    try:
        return float(sway)
    except ValueError:
        raise OptionError(f"sway: got {sway!r}, expected a number from -1 to 1.75, or none") from None


def set_threads(threads: int | None) -> None:
    """--threads: how many the process may use for one operation; None leaves torch's choice."""
    import torch

    if threads is None:
        return
    if not 1 <= threads <= 1024:
        raise OptionError(f"threads: got {threads}, expected an integer from 1 to 1024")
    torch.set_num_threads(threads)
