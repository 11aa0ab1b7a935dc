# SPDX-License-Identifier: Apache-2.0
"""``blockwave make-checkpoint``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .streams import note


def _sizes() -> list[str]:
    return ["tiny", "small", "full"]


def make_checkpoint(
    out: Annotated[Path, typer.Argument(help="Folder to write; it appears when it is complete.")],
    size: Annotated[
        str, typer.Option(help="tiny (3 MB), small, or full (1.8 GB, as released).", autocompletion=_sizes)
    ] = "tiny",
    shards: Annotated[int, typer.Option(help="Number of safetensors files; more than one come with an index.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the random weights: the same seed gives the same files.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the checkpoint that is already there.")] = False,
) -> None:
    """Write a checkpoint of random weights in the released layout, for trials. It makes noise, not speech."""
    from ..weights.make import make_checkpoint

    folder = make_checkpoint(out, size, shards, seed, overwrite=force)  # type: ignore[arg-type] # checked there
    note(f"{folder}: a {size} checkpoint of random weights; it makes noise, not speech")
