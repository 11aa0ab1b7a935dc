# SPDX-License-Identifier: Apache-2.0
"""What each block of look-ahead buys: distance to the offline mel and work, beside the public windowed scheme.

For every look-ahead: mean absolute difference of the log-mel, the worst block's, and evaluated blocks per emitted
block. Emissions and windows are three blocks; the windowed scheme of the public engines is in
``blockwave.quality.schemes``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.streaming.flows import DEFAULT, EULER_9, Flow
from blockwave import Token2Wav
from blockwave.embedded import held_out
from blockwave.quality.schemes import OWN_BLOCKS, render
from blockwave.quality.settings import parse_setting
from blockwave.weights.make import make_checkpoint

LOOK_AHEADS = (0, 1, 2, 3, "exact")
WINDOW = "window 48 + 72 + 24"  # frames before, of its own, after


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
    terms = ",".join(f"{key}={value}" for key, value in flow.items())
    settings = {f"look-ahead {blocks}": f"look-ahead={blocks},{terms}" for blocks in LOOK_AHEADS}
    settings[WINDOW] = f"window,{terms}"
    exact = [model(codes, seed=i, **flow).mel for i, codes in enumerate(sequences)]
    rows = []
    blocks = [model.config.clock.num_blocks(len(codes)) for codes in sequences]
    for name, text in settings.items():
        results = [render(model, codes, None, i, parse_setting(text)) for i, codes in enumerate(sequences)]
        errors = [np.abs(result.mel - whole) for result, whole in zip(results, exact, strict=True)]
        size = model.config.dit.block_size
        worst = max(error[i : i + size].mean() for error in errors for i in range(0, len(error), size))
        row = {
            "scheme": name,
            "log_mel_l1": float(np.concatenate(errors).mean()),
            "worst_block_l1": float(worst),
            "largest": float(max(error.max() for error in errors)),
            "work": float(np.mean([r.evaluated_blocks / own for r, own in zip(results, blocks, strict=True)])),
        }
        rows.append(row)
        figures = f"log-mel L1 {row['log_mel_l1']:.1e}, worst block {row['worst_block_l1']:.1e}"
        print(f"  {name}: {figures}, work {row['work']:.2f}", flush=True)
    return {
        "what": "log-mel distance to the offline result, and evaluated blocks per emitted block",
        "sequences": [len(codes) for codes in sequences],
        "flow": flow,
        "chunk_blocks": OWN_BLOCKS,
        "offline_log_mel": _spread(np.concatenate(exact)),
        "rows": rows,
    }


def _spread(mel: np.ndarray) -> dict[str, float]:
    """Beside which distances are to be read; weights that lose their variance would show here."""
    return {"mean": float(mel.mean()), "std": float(mel.std()), "std_over_time": float(mel.std(0).mean())}
