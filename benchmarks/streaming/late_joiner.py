# SPDX-License-Identifier: Apache-2.0
"""What a late joiner costs those that run, and what it waits itself, in batches: read from the loop's own records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.streaming.flows import DEFAULT, EULER_9, Flow, name_of, tiled
from blockwave import Token2Wav


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    flow: Flow
    running_codes: int = 480
    joining_codes: int = 96
    call_requests: int = 8
    streams: int = 8
    after_batches: int = 8


FULL, QUICK = Plan(DEFAULT), Plan(EULER_9, 240, 60, call_requests=4, streams=3, after_batches=3)


@dataclass(frozen=True)
class Waits:
    """In batches.

    Attributes:
        before: longest run of batches without the running tracks before the join.
        after: the same from the join until they are done.
        joiner: batches between the join and the first with the joiner.
    """

    before: int
    after: int
    joiner: int


def measure(quick: bool = False) -> dict[str, Any]:
    """On the embedded voice."""
    return run(Token2Wav.from_pretrained(), QUICK if quick else FULL)


def run(model: Token2Wav, plan: Plan) -> dict[str, Any]:
    """One row for every pair of a running and a joining work."""
    stream, exact, call = _stream(model, plan), _stream(model, plan, "exact"), _call(model, plan)
    pairs = {
        "stream, then stream": (stream, stream),
        "exact stream, then stream": (exact, stream),
        f"{plan.streams} streams, then stream": (_side_by_side(stream, plan.streams), stream),
        "call, then stream": (call, stream),
        "stream, then call": (stream, call),
    }
    rows = []
    for name, (running, joining) in pairs.items():
        rows.append({"pair": name} | _pair(model, plan, running, joining))
        print(f"  {rows[-1]}", flush=True)
    return {
        "what": "longest run of batches without a block of the running work, before the join and after it; batches "
        "until the joiner's first, the one that was running included; median seconds of a batch before the join, and "
        "of those with both; seconds until the joiner was done",
        "flow": name_of(plan.flow),
        "running_codes": plan.running_codes,
        "joining_codes": plan.joining_codes,
        "call_requests": plan.call_requests,
        "rows": rows,
    }


def waits(batches: Sequence[frozenset[int]], joined_at: int, running: frozenset[int]) -> Waits:
    """Of batches, given as the tracks in each; others than ``running`` joined before batch ``joined_at``."""
    last = max(i for i, tracks in enumerate(batches) if tracks & running)
    first = next(i for i, tracks in enumerate(batches) if tracks - running)
    begun = next(i for i, tracks in enumerate(batches) if tracks & running)
    return Waits(
        _longest_without(batches[begun:joined_at], running),
        _longest_without(batches[joined_at : last + 1], running),
        first - joined_at,
    )


def _longest_without(batches: Sequence[frozenset[int]], tracks: frozenset[int]) -> int:
    longest = current = 0
    for batch in batches:
        current = 0 if batch & tracks else current + 1
        longest = max(longest, current)
    return longest


Work = Callable[[int], None]


def _stream(model: Token2Wav, plan: Plan, look_ahead: int | str = 1) -> Work:
    """All codes and their end are there before any is computed, so blocks are ready at any time."""

    def run(num_codes: int) -> None:
        stream = model.stream(seed=0, look_ahead=look_ahead, **plan.flow)
        stream.feed(tiled(num_codes))
        for _ in stream.finish():
            pass

    return run


def _side_by_side(work: Work, count: int) -> Work:
    """Each share in a thread of its own."""

    def run(num_codes: int) -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, [num_codes // count] * count))

    return run


def _call(model: Token2Wav, plan: Plan) -> Work:
    def run(num_codes: int) -> None:
        each = max(1, num_codes // plan.call_requests)
        model([tiled(each, i).tolist() for i in range(plan.call_requests)], seed=0, **plan.flow)

    return run


def _pair(model: Token2Wav, plan: Plan, running: Work, joining: Work) -> dict[str, Any]:
    scheduler = model.engine.scheduler
    scheduler.records = records = []
    try:
        worker = threading.Thread(target=running, args=(plan.running_codes,))
        worker.start()
        while len(records) < plan.after_batches and worker.is_alive():
            time.sleep(0.0005)
        if not worker.is_alive():
            raise SystemExit(f"late joiner: the running work ended after {len(records)} batches, expected a longer one")
        joined_at, joined_s = len(records), time.perf_counter()
        joining(plan.joining_codes)
        joiner_s = time.perf_counter() - joined_s
        worker.join()
    finally:
        scheduler.records = None
    batches = [frozenset(track for track, _, _ in record.tasks) for record in records]
    before = frozenset().union(*batches[:joined_at])
    seconds = [record.ended_s - record.started_s for record in records]
    both = [s for s, tracks in zip(seconds, batches, strict=True) if tracks & before and tracks - before]
    found = waits(batches, joined_at, before)
    return {
        "running_waits_before": found.before,
        "running_waits": found.after,
        "joiner_waits": found.joiner,
        "batches": len(records),
        "batches_with_both": len(both),
        "batch_before_s": round(median(seconds[:joined_at]), 4),
        "batch_with_both_s": round(median(both), 4) if both else None,
        "joiner_s": round(joiner_s, 3),
    }
