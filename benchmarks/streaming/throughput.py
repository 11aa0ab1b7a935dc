# SPDX-License-Identifier: Apache-2.0
"""Requests together, one after another, and from threads: time of all, and latency of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.streaming.flows import DEFAULT, EULER_4, Flow, name_of, tiled
from blockwave import Token2Wav

BOUND = 1e-5  # of the largest value, as everywhere
THREADS = 8


@dataclass(frozen=True)
class Case:
    """Requests of lengths spread evenly between two."""

    flow: Flow
    requests: int
    codes: tuple[int, int]
    rounds: int


SHORT, LONG = (12, 25), (50, 200)  # codes: 0.24 to 0.5 s, 1 to 4 s
FULL = (
    Case(DEFAULT, 8, SHORT, 5),
    Case(DEFAULT, 32, SHORT, 2),
    Case(DEFAULT, 8, LONG, 2),
    Case(DEFAULT, 32, LONG, 1),
    Case(EULER_4, 8, SHORT, 5),
    Case(EULER_4, 32, SHORT, 3),
    Case(EULER_4, 8, LONG, 3),
    Case(EULER_4, 32, LONG, 1),
)
QUICK = (Case(EULER_4, 8, SHORT, 2), Case(EULER_4, 8, (25, 50), 1))

# Runs the requests and returns their mels, and when each was done, in seconds from the start.
Way = Callable[[], tuple[list[np.ndarray], list[float]]]


def measure(quick: bool = False) -> dict[str, Any]:
    """On the embedded voice."""
    return run(Token2Wav.from_pretrained(), QUICK if quick else FULL)


def run(model: Token2Wav, cases: Sequence[Case]) -> dict[str, Any]:
    """One row for every case."""
    rows = []
    for case in cases:
        rows.append(_row(model, case))
        print(f"  {rows[-1]}", flush=True)
    return {
        "what": "requests that are all there at the start. together: one call on the list; one_by_one: a loop of "
        f"calls; threads: {THREADS} threads that call for one request at a time. total_s: medians of interleaved "
        "rounds; ratio: one_by_one / this; latency: from the start until a request's sound is there",
        "rows": rows,
    }


def _row(model: Token2Wav, case: Case) -> dict[str, Any]:
    lengths = np.linspace(*case.codes, case.requests).round().astype(int)
    np.random.default_rng(0).shuffle(lengths)
    requests = [tiled(length, i) for i, length in enumerate(lengths)]
    ways = _ways(model, requests, case.flow)
    names = list(ways)
    for name in names:
        _ways(model, requests[:2], case.flow)[name]()  # warm
    totals: dict[str, list[float]] = {name: [] for name in names}
    latencies: dict[str, list[float]] = {name: [] for name in names}
    mels: dict[str, list[np.ndarray]] = {}
    for number in range(case.rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            mels[name], done_s = ways[name]()
            totals[name].append(max(done_s))
            latencies[name] += done_s
    difference = max(_relative(mels[name], mels["one_by_one"]) for name in names)
    if difference > BOUND:
        raise SystemExit(f"{case}: results differ by {difference:.1e} of their maximum, no ratio is reported")
    audio_s = model.config.clock.duration_s(int(lengths.sum()))
    base_s = median(totals["one_by_one"])
    row: dict[str, Any] = {
        "flow": name_of(case.flow),
        "requests": case.requests,
        "seconds_of_each": [model.config.clock.duration_s(n) for n in case.codes],
        "audio_s": round(audio_s, 3),
        "rounds": case.rounds,
        "difference": difference,
    }
    for name in names:
        row[name] = {
            "total_s": round(median(totals[name]), 3),
            "totals_s": [round(s, 3) for s in totals[name]],
            "ratio": round(base_s / median(totals[name]), 3),
            "rtf": round(median(totals[name]) / audio_s, 3),
            "latency_p50_s": round(float(np.percentile(latencies[name], 50)), 3),
            "latency_p95_s": round(float(np.percentile(latencies[name], 95)), 3),
        }
    return row


def _ways(model: Token2Wav, requests: Sequence[np.ndarray], flow: Flow) -> dict[str, Way]:
    def one(index: int, started_s: float) -> tuple[np.ndarray, float]:
        mel = model(requests[index], seed=index, **flow).mel
        return mel, time.perf_counter() - started_s

    def together() -> tuple[list[np.ndarray], list[float]]:
        started_s = time.perf_counter()
        speeches = model([codes.tolist() for codes in requests], seed=list(range(len(requests))), **flow)
        return [speech.mel for speech in speeches], [time.perf_counter() - started_s] * len(requests)

    def one_by_one() -> tuple[list[np.ndarray], list[float]]:
        started_s = time.perf_counter()
        return _unzipped([one(i, started_s) for i in range(len(requests))])

    def threads() -> tuple[list[np.ndarray], list[float]]:
        with ThreadPoolExecutor(THREADS) as pool:
            started_s = time.perf_counter()
            return _unzipped(list(pool.map(lambda i: one(i, started_s), range(len(requests)))))

    return {"together": together, "one_by_one": one_by_one, "threads": threads}


def _unzipped(results: Sequence[tuple[np.ndarray, float]]) -> tuple[list[np.ndarray], list[float]]:
    return [mel for mel, _ in results], [done_s for _, done_s in results]


def _relative(ours: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    pairs = zip(ours, expected, strict=True)
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
