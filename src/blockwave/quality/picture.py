# SPDX-License-Identifier: Apache-2.0
"""Pictures of mels. The door to matplotlib."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from ..errors import MissingExtraError
from ..voice import write_atomically

_FRAMES_PER_S = 100


def save_mel_picture(path: Path, mel: np.ndarray, block_frames: int, title: str = "") -> Path:
    """Draws mel [T, M] over time with a line at every block border, as PNG.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('pictures need matplotlib; install it with pip install "blockwave[plot]"') from None
    frames, bins = mel.shape
    figure = Figure(figsize=(max(5.0, frames / 40), 3.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(mel.T, origin="lower", aspect="auto", cmap="magma", extent=(0, frames / _FRAMES_PER_S, 0, bins))
    for border in range(block_frames, frames, block_frames):
        axes.axvline(border / _FRAMES_PER_S, color="white", linewidth=0.4, alpha=0.6)
    axes.set(xlabel="seconds (lines: blocks)", ylabel="mel bin", title=title)
    figure.colorbar(image, label="natural log magnitude")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    write_atomically(path, buffer.getvalue())
    return path
