# SPDX-License-Identifier: Apache-2.0
"""First audio behind a slow talker: how many codes, and how long after the last of them that it needs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.streaming.flows import DEFAULT, EULER_4, Flow, name_of, tiled
from benchmarks.streaming.talker import Talker
from blockwave import Token2Wav


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    flows: Sequence[Flow] = (DEFAULT, EULER_4)
    rates: Sequence[float] = (50, 100)  # codes a second; 50 is as fast as it sounds
    lengths: Sequence[int] = (100, 600)  # codes
    first_blocks: Sequence[int] = (1, 2)
    look_ahead: int = 1
    repeats: int = 5


QUICK = Plan(flows=(EULER_4,), rates=(100,), repeats=1)


def measure(quick: bool = False) -> dict[str, Any]:
    """On the embedded voice."""
    return run(Token2Wav.from_pretrained(), QUICK if quick else Plan())


def run(model: Token2Wav, plan: Plan) -> dict[str, Any]:
    """One row for every flow, rate, length and first chunk."""
    clock = model.config.clock
    per_block = clock.block_frames // clock.frames_per_code
    rows = []
    for flow in plan.flows:
        first_sound(model, tiled(3 * per_block), 1e6, per_block, 1, flow)  # warm
        for rate in plan.rates:
            for first in plan.first_blocks:
                for length in plan.lengths:
                    codes = tiled(length)
                    settings = (rate, first * per_block, plan.look_ahead, flow)
                    runs = [first_sound(model, codes, *settings) for _ in range(plan.repeats)]
                    row = {
                        "flow": name_of(flow),
                        "codes_per_s": rate,
                        "codes": length,
                        "first_chunk_codes": first * per_block,
                        "needed_codes": (first + plan.look_ahead) * per_block,
                        "taken_codes": [taken for taken, _ in runs],
                        "compute_s": [round(s, 4) for _, s in runs],
                        "compute_median_s": round(median(s for _, s in runs), 4),
                    }
                    rows.append(row)
                    print(f"  {row}", flush=True)
    return {
        "what": "needed_codes: first chunk and look-ahead; taken_codes: handed to the stream when the first audio "
        "came; compute_s: from the moment at which the last needed code was said to the first audio",
        "look_ahead": plan.look_ahead,
        "rows": rows,
    }


def first_sound(
    model: Token2Wav, codes: np.ndarray, codes_per_s: float, first_codes: int, look_ahead: int, flow: Flow
) -> tuple[int, float]:
    """Codes taken when the first samples came, and seconds since the last code that they need was said."""
    clock = model.config.clock
    needed = first_codes + look_ahead * clock.block_frames // clock.frames_per_code
    talker = Talker(codes, codes_per_s)
    with model.stream(seed=0, first_chunk_codes=first_codes, look_ahead=look_ahead, **flow) as stream:
        for chunk in stream.over(talker.pieces()):
            if len(chunk.samples):
                return talker.taken, time.perf_counter() - talker.said_s(needed)
    raise SystemExit(f"first audio: {len(codes)} codes gave no sound, expected some")
