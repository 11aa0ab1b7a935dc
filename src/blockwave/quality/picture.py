# SPDX-License-Identifier: Apache-2.0
"""Pictures of mels. The door to matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..engine.scheduler import BatchRecord
from ..errors import MissingExtraError
from ..voice import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FRAMES_PER_S = 100


def save_mel_picture(path: Path, mel: np.ndarray, block_frames: int, title: str = "") -> Path:
    """Draws mel [T, M] over time with a line at every block border, as PNG.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    frames, bins = mel.shape
    figure = _figure(max(5.0, frames / 40), 3.2)
    axes = figure.add_subplot()
    image = axes.imshow(mel.T, origin="lower", aspect="auto", cmap="magma", extent=(0, frames / _FRAMES_PER_S, 0, bins))
    for border in range(block_frames, frames, block_frames):
        axes.axvline(border / _FRAMES_PER_S, color="white", linewidth=0.4, alpha=0.6)
    axes.set(xlabel="seconds (lines: blocks)", ylabel="mel bin", title=title)
    figure.colorbar(image, label="natural log magnitude")
    return _save(figure, path)


def save_comparison_picture(
    path: Path, ours: np.ndarray, reference: np.ndarray, block_frames: int, names: tuple[str, str]
) -> Path:
    """Draws two mels [T, M] and what the first has more than the second, one above the other, as PNG.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    frames, bins = reference.shape
    difference = ours.astype(np.float64) - reference.astype(np.float64)
    largest = max(float(np.abs(difference).max()), np.finfo(np.float32).eps)
    figure = _figure(min(max(5.0, frames / 40), 60.0), 7.5)
    scale = {"vmin": min(ours.min(), reference.min()), "vmax": max(ours.max(), reference.max()), "cmap": "magma"}
    panels = figure.subplots(3, 1, sharex=True)
    for panel, mel, title, colours, label in (
        (panels[0], ours, names[0], scale, "natural log magnitude"),
        (panels[1], reference, names[1], scale, "natural log magnitude"),
        (panels[2], difference, "difference", {"vmin": -largest, "vmax": largest, "cmap": "RdBu_r"}, "first - second"),
    ):
        place = (0, frames / _FRAMES_PER_S, 0, bins)
        image = panel.imshow(mel.T, origin="lower", aspect="auto", extent=place, **colours)
        for border in range(block_frames, frames, block_frames):
            panel.axvline(border / _FRAMES_PER_S, color="grey", linewidth=0.4, alpha=0.6)
        panel.set(ylabel="mel bin", title=title)
        figure.colorbar(image, ax=panel, label=label)
    panels[-1].set(xlabel="seconds (lines: blocks)")
    return _save(figure, path)


def save_timeline_picture(path: Path, records: Sequence[BatchRecord]) -> Path:
    """Draws blocks over time: a bar for every task, its colour the evaluation, one panel for every stream.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    tracks = sorted({track for record in records for track, _, _ in record.tasks})
    evaluations = 1 + max(evaluation for record in records for _, _, evaluation in record.tasks)
    figure = _figure(9.0, 1.2 + 1.6 * len(tracks))
    panels = figure.subplots(len(tracks), 1, sharex=True, squeeze=False)[:, 0]
    colours = matplotlib_colours(evaluations)
    origin_s = records[0].started_s
    for panel, wanted in zip(panels, tracks, strict=True):
        for record in records:
            start_s, width_s = record.started_s - origin_s, record.ended_s - record.started_s
            for track, block, evaluation in record.tasks:
                if track == wanted:
                    panel.barh(block, width_s, left=start_s, height=0.9, color=colours[evaluation])
        panel.set(ylabel=f"stream {wanted}\nblock")
        panel.invert_yaxis()
    panels[-1].set(xlabel="seconds (colour: evaluation, dark to bright)")
    return _save(figure, path)


def matplotlib_colours(count: int) -> list[tuple[float, ...]]:
    """``count`` colours from dark to bright."""
    from matplotlib import colormaps

    return [tuple(colormaps["viridis"](i / max(count - 1, 1))) for i in range(count)]


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('pictures need matplotlib; install it with pip install "blockwave[plot]"') from None
    return Figure(figsize=(width, height), dpi=120, layout="constrained")


def _save(figure: Figure, path: Path) -> Path:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    write_atomically(path, buffer.getvalue())
    return path
