# SPDX-License-Identifier: Apache-2.0
"""``blockwave encode``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .streams import note, put, take

_STREAM = "-"


def encode(
    sound: Annotated[
        str, typer.Argument(help="Sound file: wav, flac, ogg, opus, mp3, any rate; - for standard input.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", help="Codes as JSON; - for standard output.")] = _STREAM,
    model: options.Model = None,
    text: Annotated[str | None, typer.Option(help="What the sound says, kept beside the codes.")] = None,
) -> None:
    """Turn a sound into speech codes, for checkpoints that publish their codebook, as the package's own voice does."""
    from ..codes_file import CodesFile
    from ..encoder import Codebook, read_sound
    from ..errors import AudioError, CodesError

    if out != _STREAM and Path(out).suffix != ".json":
        raise CodesError(f"{out}: got suffix {Path(out).suffix!r}, expected .json")
    folder, config = options.open_checkpoint(model)
    codebook = Codebook.of_checkpoint(folder, config)
    heard = read_sound(take(AudioError, "a sound") if sound == _STREAM else sound)
    codes = codebook.encode_sound(heard)
    file = CodesFile(codes, config.family.name, config.clock.codes_per_second, codebook.hash, text)
    if out == _STREAM:
        put(file.to_json())
    else:
        file.save(out)
    source = "standard input" if sound == _STREAM else sound
    note(f"{source}: {heard.duration_s:.2f} s at {heard.rate} Hz, {len(codes)} codes")
