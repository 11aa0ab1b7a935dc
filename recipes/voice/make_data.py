# SPDX-License-Identifier: Apache-2.0
"""Synthesises the corpus with hibari-tts: waves (int16, 24 kHz, flat file), log-mels and texts.

python make_data.py --out data --hours 2 --prose some_public_domain_text.txt

What is finished is kept in parts of 100 sentences; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np

SENTENCES = 100  # in a part
Row = tuple[str, np.ndarray, np.ndarray]  # text, wave int16, log-mel float16


def synthesise(texts: list[str], seed: int) -> list[Row]:
    """Seed 0 is the held-out set, at speed 1; others vary the speed by 15 %."""
    import torch
    from corpus import SAMPLES_PER_CODE, WAVE_RATE
    from hibari import Hibari

    from blockwave.encoder.log_mel import reference_mel
    from blockwave.encoder.sound import Sound

    torch.set_num_threads(1)
    tts, rng, rows = Hibari(threads=1), np.random.default_rng(seed), []
    for i, text in enumerate(texts):
        speed = float(rng.uniform(0.85, 1.15)) if seed else 1.0
        wave = np.clip(tts(text, speed=speed, seed=seed * 100003 + i), -1, 1)
        wave = wave[: len(wave) // SAMPLES_PER_CODE * SAMPLES_PER_CODE].astype(np.float32)
        if len(wave) >= 0.8 * WAVE_RATE:
            mel = reference_mel(Sound(wave, WAVE_RATE), frames_multiple=2)
            rows.append((text, np.round(wave * 32767).astype(np.int16), mel.astype(np.float16)))
    return rows


def write(folder: Path, rows: list[Row]) -> float:
    """Writes one part and returns its seconds; the index comes last and says that the rest is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    np.concatenate([wave for _, wave, _ in rows]).tofile(folder / "wave.i16")
    np.concatenate([mel for *_, mel in rows]).tofile(folder / "mel.f16")
    index = [{"text": text, "frames": len(mel)} for text, _, mel in rows]
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return seconds(folder)


def seconds(folder: Path) -> float:
    return sum(row["frames"] for row in json.loads((folder / "index.json").read_text(encoding="utf-8"))) / 100


def job(arguments: tuple[Path, list[str], int]) -> float:
    folder, texts, seed = arguments
    return seconds(folder) if (folder / "index.json").exists() else write(folder, synthesise(texts, seed))


def merge(parts: list[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("wave.i16", "mel.f16"):
        with (folder / name).open("wb") as out:
            for part in parts:
                out.write((part / name).read_bytes())
    rows = [row for part in parts for row in json.loads((part / "index.json").read_text(encoding="utf-8"))]
    (folder / "index.json").write_text(json.dumps(rows), encoding="utf-8")


def main() -> None:
    from hibari import tts as hibari_tts
    from text import HELD_OUT, sentences

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=Path("data"))
    p.add_argument("--hours", type=float, default=2.0)
    p.add_argument("--prose", type=Path)
    p.add_argument("--workers", type=int, default=2)
    a = p.parse_args()
    with gzip.open(Path(hibari_tts.ASSETS) / "lexicon_us_gold.json.gz", "rt") as file:
        lexicon = sorted(word for word in json.load(file) if word.isalpha() and word.islower() and 3 < len(word) < 12)
    started = time.time()
    job((a.out / "test", HELD_OUT, 0))
    stream = sentences(lexicon, a.prose.read_text(encoding="utf-8") if a.prose else "")
    parts, total = [], 0.0
    with multiprocessing.get_context("spawn").Pool(a.workers) as pool:
        while total < a.hours * 3600:
            jobs = []
            for _ in range(2 * a.workers):
                parts.append(a.out / "parts" / f"{len(parts) + 1:04d}")
                jobs.append((parts[-1], [next(stream) for _ in range(SENTENCES)], len(parts)))
            total += sum(pool.map(job, jobs, chunksize=1))
            print(
                f"{total / 3600:.2f} h, {SENTENCES * len(parts)} sentences, {time.time() - started:.0f} s", flush=True
            )
    merge(parts, a.out / "train")


if __name__ == "__main__":
    main()
