# SPDX-License-Identifier: Apache-2.0
"""A second, lower speaker made of the first one by WORLD: fundamental x 0.56, formants x 0.86, same timing, same codes.

python make_speaker.py --data data --hours 1

Runs after make_codebook.py. What is finished is kept in parts of 100 sentences; the same command goes on.
Morise, Yokomori and Ozawa, 2016, WORLD, DOI 10.1587/transinf.2015EDP7457; pyworld wraps it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path

import numpy as np
import settings
from corpus import WAVE_RATE, Corpus, codes_of
from make_data import SENTENCES, Row, merge, seconds, write

PITCH, FORMANTS = 0.56, 0.86  # a woman at 190 Hz becomes a man at 106 Hz; vocal tracts differ by about a sixth
F0_RANGE = (90.0, 450.0)  # Hz, of the first speaker


def lowered(wave: np.ndarray) -> np.ndarray:
    """float32 [L] at 24 kHz to the same: lower and longer-throated, with the loudness it had."""
    import pyworld

    x = wave.astype(np.float64)
    pitch, times = pyworld.harvest(x, WAVE_RATE, f0_floor=F0_RANGE[0], f0_ceil=F0_RANGE[1])
    envelope = pyworld.cheaptrick(x, pitch, times, WAVE_RATE)
    noise = pyworld.d4c(x, pitch, times, WAVE_RATE)
    out = pyworld.synthesize(PITCH * pitch, np.exp(_warped(np.log(envelope))), _warped(noise), WAVE_RATE)[: len(x)]
    out = np.pad(out, (0, len(x) - len(out)))
    gain = np.sqrt(np.square(x).mean() / np.square(out).mean())
    return np.clip(gain * out, -1, 1).astype(np.float32)


def _warped(rows: np.ndarray) -> np.ndarray:
    """[frames, bins] with every feature at FORMANTS times its frequency; the highest bin stands for what lies above."""
    bins = np.arange(rows.shape[1])
    return np.stack([np.interp(bins / FORMANTS, bins, row) for row in rows])


def job(arguments: tuple[Path, Path, str, int, int]) -> float:
    from blockwave.encoder.log_mel import reference_mel
    from blockwave.encoder.sound import Sound

    folder, data, part, first, end = arguments
    if (folder / "index.json").exists():
        return seconds(folder)
    corpus, rows = Corpus(data, part), []
    for i in range(first, end):
        wave = lowered(corpus.wave(i))
        mel = reference_mel(Sound(wave, WAVE_RATE), frames_multiple=2)
        row: Row = (corpus.text(i), np.round(wave * 32767).astype(np.int16), mel.astype(np.float16))
        rows.append(row)
    return write(folder, rows)


def share_codes(source: Corpus, made: Corpus) -> None:
    """The codes say what is spoken, the x-vector who speaks: the sentences made are the first ones of the source."""
    if not np.array_equal(source.frames[: len(made)], made.frames):
        raise ValueError("sentences of the two speakers differ in length; delete the second one's folder")
    codes_of(source)[: made.first[-1] // 2].tofile(made.folder / "codes.i16")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", type=Path, default=Path("data"))
    p.add_argument("--hours", type=float, default=1.0)
    p.add_argument("--workers", type=int, default=2)
    a = p.parse_args()
    out, started = settings.data_of(a.data, settings.SPEAKERS[1]), time.time()
    for part in ("test", "train"):
        source = Corpus(a.data, part)
        enough = int(np.searchsorted(source.first, a.hours * 360_000))
        count = len(source) if part == "test" else min(len(source), enough)
        jobs = [
            (out / "parts" / part / f"{first:06d}", a.data, part, first, min(first + SENTENCES, count))
            for first in range(0, count, SENTENCES)
        ]
        with multiprocessing.get_context("spawn").Pool(a.workers) as pool:
            for done, _ in enumerate(pool.imap(job, jobs), 1):
                print(f"{part}: {done} of {len(jobs)} parts, {time.time() - started:.0f} s", flush=True)
        merge([folder for folder, *_ in jobs], out / part)
        share_codes(source, Corpus(out, part))


if __name__ == "__main__":
    main()
