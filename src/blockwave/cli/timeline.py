# SPDX-License-Identifier: Apache-2.0
"""``blockwave timeline``: which block ran at which evaluation, when."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .streams import note


def timeline(
    out: Annotated[Path, typer.Option("--out", "-o", help="Picture to write, png.")] = Path("timeline.png"),
    model: options.Model = None,
    streams: Annotated[int, typer.Option(help="Streams that run at once; each starts a little later.")] = 3,
    codes: Annotated[int, typer.Option(help="Codes of each stream.")] = 96,
    look_ahead: Annotated[str, typer.Option(help="Blocks of look-ahead, or exact.")] = "1",
    steps: Annotated[int, typer.Option(help="Time points of the solve.")] = 4,
    batch_blocks: Annotated[int, typer.Option(help="Most blocks in a batch, branches counted.")] = 16,
) -> None:
    """Draw how concurrent streams share batches: a mark for every block at every evaluation, over time."""
    import numpy as np

    from ..engine import Token2Wav
    from ..errors import OptionError
    from ..quality.picture import save_timeline_picture

    for name, value, least, most in (
        ("streams", streams, 1, 16),
        ("codes", codes, 1, 3000),
        ("batch-blocks", batch_blocks, 2, 4096),
    ):
        if not least <= value <= most:
            raise OptionError(f"{name}: got {value}, expected {least} to {most}")
    if out.suffix != ".png":
        raise OptionError(f"out: got {str(out)!r}, expected a name that ends in .png")
    loaded = Token2Wav.from_pretrained(model)
    scheduler = loaded.engine.scheduler
    scheduler.max_blocks, scheduler.records = batch_blocks, []
    wanted = int(look_ahead) if look_ahead.isdecimal() else look_ahead
    made = [loaded.stream(seed=i, look_ahead=wanted, steps=steps) for i in range(streams)]
    drawn = np.random.default_rng(0).integers(1, loaded.config.dit.num_embeds + 1, (streams, codes))
    legal = np.where(np.isin(drawn, sorted(loaded.config.family.special)), 1, drawn)
    sounds = []
    for i, stream in enumerate(made):  # what has come is computed while the next one joins
        sounds.append(stream.feed(legal[i]))
        for _ in range(4):
            loaded.engine.step()
    ends = [stream.finish() for stream in made]
    for sound in (*sounds, *ends):
        for _ in sound:
            pass
    save_timeline_picture(out, scheduler.records)
    note(f"{out}: {len(scheduler.records)} batches, {scheduler.counters.tasks} tasks of {streams} streams")
