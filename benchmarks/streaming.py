# SPDX-License-Identifier: Apache-2.0
"""What each block of look-ahead buys: distance to the offline mel and work, beside the public windowed scheme.

    python -m benchmarks.streaming [--sentences 12] [--checkpoint DIR --codes 119] [--threads 2]

For every look-ahead: mean absolute difference of the log-mel, the worst block's, and evaluated blocks per emitted
block. The windowed scheme is that of the public engines: 72 frames of its own, 48 before and 24 after, every window
solved anew as a sequence of its own. Written anew here from that description.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import machine
from blockwave import Token2Wav
from blockwave.embedded import held_out
from blockwave.mel.noise import seeded_noise

OWN, PAST, FUTURE = 72, 48, 24  # frames
FIRST_CODES, CHUNK_CODES = 36, 36
LOOK_AHEADS = (0, 1, 2, 3, "exact")

Solve = Callable[[Token2Wav, np.ndarray, int], tuple[np.ndarray, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=12, help="held-out sentences of the embedded voice")
    parser.add_argument("--checkpoint", type=Path, help="another checkpoint, on random codes")
    parser.add_argument("--codes", type=int, default=119, help="length of the random codes")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--name", default="streaming-embedded")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = Token2Wav.from_pretrained(arguments.checkpoint)
    if arguments.checkpoint is None:
        sequences = [sentence.codes for sentence in held_out()[: arguments.sentences]]
    else:
        rng = np.random.default_rng(0)
        sequences = [rng.integers(1, model.config.dit.num_embeds, arguments.codes) for _ in range(2)]
    content = {
        "what": "log-mel distance to the offline result, and evaluated blocks per emitted block",
        "checkpoint": str(arguments.checkpoint or "embedded voice"),
        "sequences": len(sequences),
        "first_chunk_codes": FIRST_CODES,
        "chunk_codes": CHUNK_CODES,
        "machine": machine.describe(),
        "rows": run(model, sequences),
    }
    print(machine.write(arguments.name, content))


def run(model: Token2Wav, sequences: list[np.ndarray]) -> list[dict[str, Any]]:
    """One row per scheme."""
    schemes: dict[str, Solve] = {f"look-ahead {blocks}": _look_ahead(blocks) for blocks in LOOK_AHEADS}
    schemes["window 48+72+24"] = windowed
    exact = [model(codes, seed=i).mel for i, codes in enumerate(sequences)]
    rows = []
    for name, solve in schemes.items():
        results = [solve(model, codes, i) for i, codes in enumerate(sequences)]
        errors = [np.abs(mel - whole) for (mel, _), whole in zip(results, exact, strict=True)]
        size = model.config.dit.block_size
        worst = max(error[i : i + size].mean() for error in errors for i in range(0, len(error), size))
        row = {
            "scheme": name,
            "log_mel_l1": float(np.concatenate(errors).mean()),
            "worst_block_l1": float(worst),
            "largest": float(max(error.max() for error in errors)),
            "work": float(np.mean([work for _, work in results])),
        }
        rows.append(row)
        figures = f"log-mel L1 {row['log_mel_l1']:.1e}, worst block {row['worst_block_l1']:.1e}"
        print(f"{name}: {figures}, work {row['work']:.2f}", flush=True)
    return rows


def _look_ahead(blocks: int | str) -> Solve:
    def solve(model: Token2Wav, codes: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
        stream = model.stream(seed=seed, look_ahead=blocks, first_chunk_codes=FIRST_CODES, chunk_codes=CHUNK_CODES)
        mel = np.concatenate([chunk.mel for chunk in (*stream.feed(codes), *stream.finish())])
        return mel, stream.evaluated_blocks / (model.config.clock.num_blocks(len(codes)) * stream.evaluations)

    return solve


def windowed(model: Token2Wav, codes: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """Every window a sequence of its own, from the same noise; what lies outside its own frames is thrown away."""
    clock, mel_dim = model.config.clock, model.config.dit.mel_dim
    frames, repeats = clock.num_frames(len(codes)), clock.frames_per_code
    noise = seeded_noise(seed, frames, mel_dim)
    parts, evaluated = [], 0
    for start in range(0, frames, OWN):
        stop = min(start + OWN, frames)
        first, last = max(start - PAST, 0), min(stop + FUTURE, frames)
        mel = model(codes[first // repeats : last // repeats], noise=noise[first:last]).mel
        parts.append(mel[start - first : stop - first])
        evaluated += clock.num_blocks((last - first) // repeats)
    return np.concatenate(parts), evaluated / clock.num_blocks(len(codes))


if __name__ == "__main__":
    main()
