# SPDX-License-Identifier: Apache-2.0
"""``blockwave compare``: how far is this sound from that?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .streams import note, put_json, put_table

if TYPE_CHECKING:
    import numpy as np

_MEL = ".npy"


def compare(
    ours: Annotated[Path, typer.Argument(help="Sound file, or a log-mel as npy [T, M].")],
    reference: Annotated[Path, typer.Argument(help="What it is measured against: of the same kind, rate and length.")],
    picture: Annotated[Path, typer.Option(help="Both log-mels and their difference, png.", show_default=True)] = Path(
        "compare.png"
    ),
    block_frames: Annotated[int, typer.Option(help="Frames of a block, hundredths of a second.")] = 24,
    json: options.Json = False,
) -> None:
    """Measure a sound against another: log-mel, spectral convergence, SI-SDR, STOI, PESQ, level; with a picture.

    STOI needs the extra quality, PESQ the extra pesq; without them their rows are empty.
    """
    from ..encoder import read_sound, reference_mel
    from ..errors import OptionError
    from ..quality.figures import check_pair, compare_mels, compare_sounds, missing_figures
    from ..quality.soundness import faults

    if not 1 <= block_frames <= 10_000:
        raise OptionError(f"block-frames: got {block_frames}, expected an integer from 1 to 10000")
    if picture.suffix != ".png":
        raise OptionError(f"picture: got {str(picture)!r}, expected a name that ends in .png")
    if (ours.suffix == _MEL) != (reference.suffix == _MEL):
        raise OptionError(f"compare: got {ours} and {reference}, expected two sounds or two log-mels")
    content: dict[str, Any] = {"ours": str(ours), "reference": str(reference)}
    if ours.suffix == _MEL:
        mels = _read_mel(ours), _read_mel(reference)
        content |= {"kind": "log-mels", "figures": compare_mels(*mels, block_frames), "missing": {}, "faults": {}}
    else:
        sounds = read_sound(ours), read_sound(reference)
        check_pair(*sounds, str(ours), str(reference))
        content |= {
            "kind": "sounds",
            "rate": sounds[0].rate,
            "seconds": sounds[0].duration_s,
            "figures": compare_sounds(*sounds, block_frames),
            "missing": missing_figures(),
            "faults": {str(p): faults(s.samples) for p, s in zip((ours, reference), sounds, strict=True)},
        }
        mels = reference_mel(sounds[0]), reference_mel(sounds[1])
    content["picture"] = _draw(picture, mels, block_frames, (ours.name, reference.name))
    _report(content, json)


def _read_mel(path: Path) -> np.ndarray:
    import numpy as np

    from ..arrays import read_bytes, read_npy
    from ..errors import OptionError

    mel = read_npy(read_bytes(path, OptionError, "a log-mel"), f"log-mel {path}", OptionError)
    if mel.ndim != 2 or mel.dtype.kind != "f" or mel.size == 0 or not np.isfinite(mel).all():
        raise OptionError(
            f"log-mel {path}: got {mel.dtype} {list(mel.shape)}, expected finite floats [T, M], frames first"
        )
    return mel


def _draw(path: Path, mels: tuple[np.ndarray, np.ndarray], block_frames: int, names: tuple[str, str]) -> str | None:
    from ..errors import MissingExtraError
    from ..quality.picture import save_comparison_picture

    try:
        return str(save_comparison_picture(path, mels[0], mels[1], block_frames, names))
    except MissingExtraError as missing:
        note(f"{path}: no picture; {missing}")
        return None


def _report(content: dict[str, Any], json: bool) -> None:
    from ..quality.figures import FIGURES, show

    for message in content["missing"].values():
        note(message)
    for path, found in content["faults"].items():
        for fault in found:
            note(f"warning: {path}: {fault}")
    if json:
        put_json(content, indent=2)
        return
    rows = [(FIGURES[key].title, show(key, value), FIGURES[key].equal) for key, value in content["figures"].items()]
    put_table(f"{content['ours']} against {content['reference']}", rows, ("figure", "value", "equal ones have"))
    if content["picture"]:
        note(f"{content['picture']}: both log-mels and their difference")
