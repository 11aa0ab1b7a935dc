# SPDX-License-Identifier: Apache-2.0
"""What each block of look-ahead buys: distance to the offline mel and work, beside the public windowed scheme.

For every look-ahead: mean absolute difference of the log-mel, the worst block's, and evaluated blocks per emitted
block. The windowed scheme is that of the public engines: 72 frames of its own, 48 before and 24 after, every window
solved anew as a sequence of its own. Written anew here from that description.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.streaming.flows import DEFAULT, EULER_9, Flow
from blockwave import Token2Wav
from blockwave.embedded import held_out
from blockwave.mel.noise import seeded_noise
from blockwave.weights.make import make_checkpoint

OWN, PAST, FUTURE = 72, 48, 24  # frames
FIRST_CODES, CHUNK_CODES = 36, 36
LOOK_AHEADS = (0, 1, 2, 3, "exact")

Solve = Callable[[Token2Wav, np.ndarray, int, Flow], tuple[np.ndarray, float]]


def embedded(quick: bool = False) -> dict[str, Any]:
    """On held-out sentences of the embedded voice."""
    sequences = [sentence.codes for sentence in held_out()[: 1 if quick else 6]]
    flow = EULER_9 | {"steps": 4} if quick else DEFAULT
    return {"weights": "embedded voice"} | run(Token2Wav.from_pretrained(), sequences, flow)


def released(quick: bool = False, checkpoint: Path | None = None) -> dict[str, Any]:
    """On variance-keeping random weights of the released size (``weights.random_values``), or on a checkpoint."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = checkpoint or make_checkpoint(Path(scratch) / "checkpoint", "full")
        model = Token2Wav.from_pretrained(folder)
    rng = np.random.default_rng(0)
    sequences = [rng.integers(1, model.config.dit.num_embeds, 84 if quick else 180)]
    kind = "random, variance kept, released size" if model.config.random else "of a checkpoint"
    return {"weights": kind} | run(model, sequences, EULER_9 | {"steps": 3} if quick else EULER_9)


def run(model: Token2Wav, sequences: Sequence[np.ndarray], flow: Flow) -> dict[str, Any]:
    """One row per scheme."""
    schemes: dict[str, Solve] = {f"look-ahead {blocks}": _look_ahead(blocks) for blocks in LOOK_AHEADS}
    schemes[f"window {PAST} + {OWN} + {FUTURE}"] = windowed
    exact = [model(codes, seed=i, **flow).mel for i, codes in enumerate(sequences)]
    rows = []
    for name, solve in schemes.items():
        results = [solve(model, codes, i, flow) for i, codes in enumerate(sequences)]
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
        print(f"  {name}: {figures}, work {row['work']:.2f}", flush=True)
    return {
        "what": "log-mel distance to the offline result, and evaluated blocks per emitted block",
        "sequences": [len(codes) for codes in sequences],
        "flow": flow,
        "first_chunk_codes": FIRST_CODES,
        "chunk_codes": CHUNK_CODES,
        "offline_log_mel": _spread(np.concatenate(exact)),
        "rows": rows,
    }


def _spread(mel: np.ndarray) -> dict[str, float]:
    """Beside which distances are to be read; weights that lose their variance would show here."""
    return {"mean": float(mel.mean()), "std": float(mel.std()), "std_over_time": float(mel.std(0).mean())}


def _look_ahead(blocks: int | str) -> Solve:
    def solve(model: Token2Wav, codes: np.ndarray, seed: int, flow: Flow) -> tuple[np.ndarray, float]:
        emissions = {"look_ahead": blocks, "first_chunk_codes": FIRST_CODES, "chunk_codes": CHUNK_CODES}
        stream = model.stream(seed=seed, **emissions, **flow)
        mel = np.concatenate([chunk.mel for chunk in (*stream.feed(codes), *stream.finish())])
        return mel, stream.evaluated_blocks / (model.config.clock.num_blocks(len(codes)) * stream.evaluations)

    return solve


def windowed(model: Token2Wav, codes: np.ndarray, seed: int, flow: Flow) -> tuple[np.ndarray, float]:
    """Every window a sequence of its own, from the same noise; what lies outside its own frames is thrown away."""
    clock, mel_dim = model.config.clock, model.config.dit.mel_dim
    frames, repeats = clock.num_frames(len(codes)), clock.frames_per_code
    noise = seeded_noise(seed, frames, mel_dim)
    parts, evaluated = [], 0
    for start in range(0, frames, OWN):
        stop = min(start + OWN, frames)
        first, last = max(start - PAST, 0), min(stop + FUTURE, frames)
        mel = model(codes[first // repeats : last // repeats], noise=noise[first:last], **flow).mel
        parts.append(mel[start - first : stop - first])
        evaluated += clock.num_blocks((last - first) // repeats)
    return np.concatenate(parts), evaluated / clock.num_blocks(len(codes))
