# SPDX-License-Identifier: Apache-2.0
"""Judges a voice on the held-out sentences: source, copy synthesis (mel to vocoder), full chain (codes to sound).

python evaluate.py --data data --voice voice --out runs/voice.json --whisper DIR
python evaluate.py --data data --voice voice --vocoder runs/vocoder/last.pt --count 12 --curve results/curve.csv

--vocoder puts a checkpoint of the training in the place of the voice's vocoder. --whisper is a folder with a
faster-whisper model; without it no words are counted. The mels of the flow are kept in --mels, since they do not depend
on the vocoder. Figures that compare with the source do so sample by sample: both have the same 480 samples per code.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import settings
import soundfile
import soxr
import torch
import vocoder as voc
from corpus import WAVE_RATE, Corpus
from losses import AlignedLoss

from blockwave import Token2Wav
from blockwave.encoder.log_mel import reference_mel
from blockwave.encoder.sound import Sound
from blockwave.quality.bootstrap import estimate
from blockwave.quality.error_rates import count_errors
from blockwave.quality.lines import frame_lines, voiced_windows
from blockwave.quality.recognition import Recogniser

STAGES = ("source", "copy", "full")
BANDS = ((1000, 2000), (2000, 3000), (3000, 4000), (4000, 6000), (6000, 8000))


def load_vocoder(path: Path, raw: bool = False) -> tuple[Callable[[np.ndarray], np.ndarray], int, float]:
    """The averaged weights of a training checkpoint as mel -> wave, with its step and hours."""
    state = torch.load(path, weights_only=True)
    model = voc.make(**state["shape"])
    model.load_state_dict(state["model" if raw else "ema"])
    model = voc.fuse(model).eval()

    @torch.no_grad()
    def render(mel: np.ndarray) -> np.ndarray:
        return voc.vocode(model, torch.from_numpy(mel[None])).clamp(-1, 1)[0].numpy()

    return render, state["step"], state["seconds"] / 3600


def engine_vocoder(voice: Token2Wav) -> Callable[[np.ndarray], np.ndarray]:
    @torch.no_grad()
    def render(mel: np.ndarray) -> np.ndarray:
        return voice.engine.vocoder(torch.from_numpy(mel[None]))[0].numpy()

    return render


class Judge:
    """Figures of one sentence against its source."""

    def __init__(self, whisper: str | None) -> None:
        from pesq import pesq
        from pystoi import stoi

        self.pesq, self.stoi, self.aligned = pesq, stoi, AlignedLoss()
        self.recogniser = None if whisper is None else Recogniser(whisper)

    def figures(self, wave: np.ndarray, source: np.ndarray) -> dict[str, float]:
        windows = voiced_windows(source, WAVE_RATE)
        out = {"lines_db": frame_lines(wave, WAVE_RATE, windows=windows)}
        for band in BANDS:
            out[f"lines_{band[0] // 1000}_{band[1] // 1000}_khz_db"] = frame_lines(
                wave, WAVE_RATE, band=band, windows=windows
            )
        low, source_low = (soxr.resample(x, WAVE_RATE, 16000) for x in (wave, source))
        out["pesq"] = float(self.pesq(16000, source_low, low, "wb"))
        out["stoi"] = float(self.stoi(source_low, low, 16000))
        out["level_db"] = float(10 * np.log10(np.mean(wave**2) / np.mean(source**2)))
        mel, there = (np.maximum(reference_mel(Sound(x, WAVE_RATE), 2), settings.QUIET) for x in (wave, source))
        out["mel_l1"] = float(np.abs(mel - there).mean())
        with torch.no_grad():
            out["coherence"] = 1 - float(self.aligned(torch.from_numpy(wave[None]), torch.from_numpy(source[None])))
        return out


def flow_mels(voice: Token2Wav, speaker: str, test: Corpus, count: int, kept: Path | None) -> list[np.ndarray]:
    """The flow's mels with the defaults (10 time points, RK4, guidance 0.5), seed = number of the sentence."""
    mels = []
    for i in range(count):
        path = kept / f"{i:02d}.npy" if kept else None
        if path and path.exists():
            mels.append(np.load(path))
            continue
        mels.append(voice(test.codes(i), voice=speaker, seed=i).mel)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, mels[-1])
    return mels


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default="data")
    p.add_argument("--speaker", choices=settings.SPEAKERS, default=settings.SPEAKERS[0])
    p.add_argument("--voice", type=Path, help="a voice's folder; the embedded voice if left out")
    p.add_argument("--vocoder", type=Path)
    p.add_argument("--raw", action="store_true", help="the last weights instead of their average")
    p.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    p.add_argument("--count", type=int, default=50)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--whisper")
    p.add_argument("--mels", type=Path)
    p.add_argument("--waves", type=Path, help="where to keep the sounds")
    p.add_argument("--out", type=Path)
    p.add_argument("--curve", type=Path, help="a table that gets one more row per stage")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    test = Corpus(settings.data_of(a.data, a.speaker), "test")
    voice, judge = Token2Wav.from_pretrained(a.voice), Judge(a.whisper)
    render, step, hours = load_vocoder(a.vocoder, a.raw) if a.vocoder else (engine_vocoder(voice), 0, 0.0)
    mels = None
    if "full" in a.stages:
        mels = flow_mels(voice, a.speaker, test, a.count, a.mels)
    result: dict[str, Any] = {"speaker": a.speaker, "sentences": a.count, "step": step, "hours": round(hours, 3)}
    for stage in a.stages:
        started, rows, heard = time.time(), [], []
        for i in range(a.count):
            source = test.wave(i)
            wave = source if stage == "source" else render(test.mel(i) if stage == "copy" else mels[i])
            rows.append(judge.figures(wave, source[: len(wave)]))
            if a.waves:
                a.waves.mkdir(parents=True, exist_ok=True)
                soundfile.write(a.waves / f"{stage}_{i:02d}.wav", wave, WAVE_RATE)
            if judge.recogniser is not None:
                heard.append(judge.recogniser.hear(wave, WAVE_RATE))
        result[stage] = {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}
        if heard:
            result[stage] |= words(heard, [test.text(i) for i in range(a.count)])
        print(
            stage,
            {k: v for k, v in result[stage].items() if k != "wrong"},
            f"{time.time() - started:.0f} s",
            flush=True,
        )
        if a.curve:
            append(
                a.curve, {"step": step, "hours": f"{hours:.3f}", "stage": stage, "sentences": a.count}, result[stage]
            )
    if a.out:
        a.out.parent.mkdir(parents=True, exist_ok=True)
        a.out.write_text(json.dumps(result, indent=1) + "\n")


def words(heard: list[str], said: list[str]) -> dict[str, Any]:
    """Word and character error rates in percent with 95 % intervals, and the sentences with errors."""
    counts = [count_errors(*pair) for pair in zip(heard, said, strict=True)]
    wer = estimate([100 * c.word_errors for c in counts], [c.words for c in counts])
    cer = estimate([100 * c.character_errors for c in counts], [c.characters for c in counts])
    rates = {name: [round(x, 2) for x in (e.value, e.low, e.high)] for name, e in (("wer", wer), ("cer", cer))}
    wrong = [f"{s} | {h}" for c, s, h in zip(counts, said, heard, strict=True) if c.word_errors]
    return rates | {"words": sum(c.words for c in counts), "wrong": wrong}


def append(table: Path, about: dict[str, Any], figures: dict[str, Any]) -> None:
    row = about | {k: v for k, v in figures.items() if isinstance(v, float)}
    new = not table.exists()
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(row)
        writer.writerow(row.values())


if __name__ == "__main__":
    main()
