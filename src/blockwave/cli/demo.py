# SPDX-License-Identifier: Apache-2.0
"""``blockwave demo``: the package's own voice speaks, with a picture of what it computed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from .streams import note

_IMPORTED_S = time.perf_counter()


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")] = Path("."),
    count: Annotated[int, typer.Option(help="How many of the held-out sentences.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 0,
) -> None:
    """Speak held-out sentences with the embedded voice; beside each sound a picture of its mel and blocks."""
    from ..embedded import held_out
    from ..engine import Token2Wav
    from ..errors import OptionError

    sentences = held_out()
    if not 1 <= count <= len(sentences):
        raise OptionError(f"count: got {count}, expected 1 to {len(sentences)}")
    model = Token2Wav.from_pretrained()
    note(f"the embedded voice, loaded {seconds_since_start():.2f} s after the process started")
    for i, sentence in enumerate(sentences[:count], start=1):
        speech = model(sentence.codes, seed=seed)
        path = speech.save(out / f"blockwave-demo-{i}.wav")
        note(f'{path}: "{sentence.text}" {speech.duration_s:.2f} s, RTF {speech.timings.rtf:.2f} (compute / audio)')
        note(f"{path}: written {seconds_since_start():.2f} s after the process started")
        _picture(path.with_suffix(".png"), speech.mel, model.config.dit.block_size, sentence.text or "")
    note("the voice is small and synthetic, see its model card")


def seconds_since_start() -> float:
    """Wall time since the process was started; on systems without /proc since this module was imported."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return time.perf_counter() - _IMPORTED_S
    return uptime_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")  # starttime, field 22 of proc(5)


def _picture(path: Path, mel, block_frames: int, title: str) -> None:
    from ..errors import MissingExtraError
    from ..quality.picture import save_mel_picture

    try:
        save_mel_picture(path, mel, block_frames, title)
    except MissingExtraError as missing:
        note(f"{path}: no picture; {missing}")
        return
    note(f"{path}: its mel, with the {block_frames}-frame blocks")
