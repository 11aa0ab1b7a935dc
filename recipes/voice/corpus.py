# SPDX-License-Identifier: Apache-2.0
"""Reads what make_data.py and make_codebook.py wrote: memory-mapped waves, log-mels and codes, sentence by sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

WAVE_RATE = 24_000
SAMPLES_PER_FRAME = 240
SAMPLES_PER_CODE = 480
BINS = 80


class Corpus:
    """One part of the data, "train" or "test".

    Attributes:
        frames: [N], mel frames of every sentence.
        first: [N + 1], where they begin in the flat files.
        all_mel: float16 [frames, 80].
        all_wave: int16 [samples].
    """

    def __init__(self, folder: str | Path, part: str = "train") -> None:
        self.folder = Path(folder) / part
        self.rows = json.loads((self.folder / "index.json").read_text(encoding="utf-8"))
        self.frames = np.array([row["frames"] for row in self.rows])
        self.first = np.concatenate([[0], np.cumsum(self.frames)])
        self.all_mel = np.memmap(self.folder / "mel.f16", np.float16, "r").reshape(-1, BINS)
        self.all_wave = np.memmap(self.folder / "wave.i16", np.int16, "r")

    def __len__(self) -> int:
        return len(self.rows)

    def text(self, i: int) -> str:
        return self.rows[i]["text"]

    def mel(self, i: int, start: int = 0, frames: int | None = None) -> np.ndarray:
        """float32 [frames, 80]; the whole sentence by default."""
        begin, end = self._span(i, start, frames)
        return np.asarray(self.all_mel[begin:end], np.float32)

    def wave(self, i: int, start: int = 0, frames: int | None = None) -> np.ndarray:
        """float32 [frames * 240] at 24 kHz, aligned with mel()."""
        begin, end = self._span(i, start, frames)
        samples = self.all_wave[begin * SAMPLES_PER_FRAME : end * SAMPLES_PER_FRAME]
        return np.asarray(samples, np.float32) / 32767

    def codes(self, i: int) -> np.ndarray:
        """int64 [frames / 2]."""
        begin, end = self._span(i, 0, None)
        return codes_of(self)[begin // 2 : end // 2].astype(np.int64)

    def _span(self, i: int, start: int, frames: int | None) -> tuple[int, int]:
        begin = self.first[i] + start
        return begin, self.first[i + 1] if frames is None else begin + frames


def codes_of(corpus: Corpus) -> np.ndarray:
    """int16 [frames / 2], codes of the whole part."""
    return np.fromfile(corpus.folder / "codes.i16", np.int16)
