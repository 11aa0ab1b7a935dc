# SPDX-License-Identifier: Apache-2.0
"""Live streams side by side, each with a talker and a player: how late playback has to start to never run dry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.streaming.flows import EULER_2_UNGUIDED, EULER_4, EULER_4_UNGUIDED, Flow, distance, name_of, tiled
from benchmarks.streaming.player import Chunking, Piece, smallest_delay_s, underruns
from benchmarks.streaming.talker import Talker
from blockwave import Token2Wav

SHORT_DELAY_S, LONG_DELAY_S = 0.2, 1.0


@dataclass(frozen=True)
class Case:
    """Streams that differ in nothing but their codes and the moment at which they start."""

    flow: Flow = field(default_factory=lambda: EULER_4)
    streams: int = 1
    first_blocks: int = 1
    chunk_blocks: int = 3
    look_ahead: int = 1
    driver: str = "threads"


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    cases: Sequence[Case]
    num_codes: int = 300
    codes_per_s: float = 75  # one and a half times as fast as it sounds
    repeats: int = 1


def full() -> Plan:
    """How many streams, for three flows; then other chunks, and asynchronous sources."""
    counts = (1, 2, 4, 6, 8, 10, 16)
    return Plan(
        [Case(flow, n) for flow in (EULER_4, EULER_4_UNGUIDED, EULER_2_UNGUIDED) for n in counts]
        + [Case(EULER_4, n, first, chunk) for first, chunk in ((3, 3), (1, 1), (2, 2)) for n in (1, 4)]
        + [Case(EULER_4, n, driver="asyncio") for n in (4, 8, 16)]
    )


QUICK = Plan([Case(streams=1), Case(streams=4), Case(streams=4, driver="asyncio")], num_codes=96)


def measure(quick: bool = False) -> dict[str, Any]:
    """On the embedded voice."""
    model = Token2Wav.from_pretrained()
    content = run(model, QUICK if quick else full())
    codes = [tiled(96 if quick else 300)]
    flows = {name_of(row): row for row in (EULER_4, EULER_4_UNGUIDED, EULER_2_UNGUIDED)}
    content["log_mel_l1_to_the_default_flow"] = {name: distance(model, flow, codes) for name, flow in flows.items()}
    return content


def run(model: Token2Wav, plan: Plan) -> dict[str, Any]:
    """One row for every case."""
    _play(model, plan, Case(streams=1))  # warm
    rows = []
    for case in plan.cases:
        row = _row(model, plan, case)
        rows.append(row)
        print(f"  {row}", flush=True)
    by_flow: dict[str, list[dict[str, Any]]] = {}
    for case, row in zip(plan.cases, rows, strict=True):
        if case == Case(case.flow, case.streams):
            by_flow.setdefault(row["flow"], []).append(row)
    return {
        "what": "live streams at once. first_audio_s: from a stream's first code; smallest_delay_s: after the first "
        "audio, so that playback never runs dry; a machine without limits would need no_compute_delay_s; chunk_lag_s: "
        "the time in which the codes of one chunk are said",
        "codes_per_s": plan.codes_per_s,
        "codes_of_each": plan.num_codes,
        "rounds": plan.repeats,
        "rows": rows,
        "holds": {
            flow: {delay: limits(rows, f"underruns_at_{delay}") for delay in ("chunk_lag", "1_s")}
            for flow, rows in by_flow.items()
        },
    }


def limits(rows: Sequence[dict[str, Any]], gaps: str) -> dict[str, int | None]:
    """Most streams up to which none runs dry, and the fewest of which one does."""
    first = min((row["streams"] for row in rows if row[gaps]), default=None)
    holding = (row["streams"] for row in rows if not row[gaps] and (first is None or row["streams"] < first))
    return {"streams": max(holding, default=None), "starves_at": first}


def _row(model: Token2Wav, plan: Plan, case: Case) -> dict[str, Any]:
    clock = model.config.clock
    per_block = clock.block_frames // clock.frames_per_code
    lag_s = case.chunk_blocks * per_block / plan.codes_per_s
    plays = [_play(model, plan, case) for _ in range(plan.repeats)]
    streams = [stream for played in plays for stream in played.streams]
    delays = [smallest_delay_s(stream.pieces, clock.sample_rate) for stream in streams]
    ideal = [smallest_delay_s(stream.without_compute, clock.sample_rate) for stream in streams]
    firsts = [next(piece.at_s for piece in stream.pieces if piece.num_samples) for stream in streams]
    audio_s = case.streams * plan.repeats * clock.duration_s(plan.num_codes)
    dry = {
        delay_s: [underruns(stream.pieces, clock.sample_rate, delay_s) for stream in streams]
        for delay_s in (0, SHORT_DELAY_S, lag_s, LONG_DELAY_S)
    }
    return {
        "flow": name_of(case.flow),
        "streams": case.streams,
        "driver": case.driver,
        "first_chunk_codes": case.first_blocks * per_block,
        "chunk_codes": case.chunk_blocks * per_block,
        "look_ahead": case.look_ahead,
        "first_audio_median_s": _rounded(np.median(firsts)),
        "first_audio_worst_s": _rounded(max(firsts)),
        "smallest_delay_median_s": _rounded(np.median(delays)),
        "smallest_delay_worst_s": _rounded(max(delays)),
        "no_compute_delay_s": _rounded(max(ideal)),
        "chunk_lag_s": _rounded(lag_s),
        "underruns_at_0": sum(count for count, _ in dry[0]),
        "underruns_at_200_ms": sum(count for count, _ in dry[SHORT_DELAY_S]),
        "underruns_at_chunk_lag": sum(count for count, _ in dry[lag_s]),
        "underruns_at_1_s": sum(count for count, _ in dry[LONG_DELAY_S]),
        "silent_at_chunk_lag_s": _rounded(sum(silent_s for _, silent_s in dry[lag_s])),
        "loop_stall_worst_s": _rounded(max(p.loop_stall_s for p in plays)) if case.driver == "asyncio" else None,
        "blocks_per_batch": _rounded(sum(p.blocks for p in plays) / sum(p.batches for p in plays)),
        "wall_per_audio": _rounded(sum(played.wall_s for played in plays) / audio_s),
        "cpu_per_audio": _rounded(sum(played.cpu_s for played in plays) / audio_s),
    }


@dataclass(frozen=True)
class _Stream:
    """Pieces as they came and as they would have come at once; times since the stream's first code was begun."""

    pieces: list[Piece]
    without_compute: list[Piece]


@dataclass(frozen=True)
class _Played:
    streams: list[_Stream]
    wall_s: float
    cpu_s: float
    batches: int
    blocks: int  # all branches
    loop_stall_s: float  # longest time for which an event loop stood still


def _play(model: Token2Wav, plan: Plan, case: Case) -> _Played:
    clock = model.config.clock
    per_block = clock.block_frames // clock.frames_per_code
    settings = {
        "first_chunk_codes": case.first_blocks * per_block,
        "chunk_codes": case.chunk_blocks * per_block,
        "look_ahead": case.look_ahead,
        **case.flow,
    }
    chunking = Chunking(
        settings["first_chunk_codes"], settings["chunk_codes"], case.look_ahead * per_block, plan.num_codes
    )
    streams = [model.stream(seed=i, **settings) for i in range(case.streams)]
    # Spread over one chunk, as streams that know nothing of each other are.
    starts = np.random.default_rng(0).random(case.streams) * settings["chunk_codes"] / plan.codes_per_s
    counters = model.engine.scheduler.counters
    batches, blocks = counters.batches, counters.blocks
    base_s, cpu_s = time.perf_counter() + 0.05, time.process_time()
    talkers = [Talker(tiled(plan.num_codes, 2 * i), plan.codes_per_s, base_s + start) for i, start in enumerate(starts)]

    lateness = [0.0]

    def note(talker: Talker, chunk: Any, frames: int, out: _Stream) -> int:
        frames += len(chunk.mel)
        size = chunk.first_sample, len(chunk.samples)
        needed = chunking.needed(frames // clock.frames_per_code)
        out.pieces.append(Piece(time.perf_counter() - talker.started_s, *size))
        out.without_compute.append(Piece(talker.said_s(needed) - talker.started_s, *size))
        return frames

    def follow(stream: Any, talker: Talker) -> _Stream:
        out, frames = _Stream([], []), 0
        time.sleep(max(0.0, talker.started_s - time.perf_counter()))
        for chunk in stream.over(talker.pieces()):
            frames = note(talker, chunk, frames, out)
        return out

    async def follow_async(stream: Any, talker: Talker) -> _Stream:
        out, frames = _Stream([], []), 0
        await asyncio.sleep(max(0.0, talker.started_s - time.perf_counter()))
        async for chunk in stream.over_async(talker.pieces_async()):
            frames = note(talker, chunk, frames, out)
        return out

    async def gather() -> list[_Stream]:
        beat = asyncio.create_task(_heartbeat(lateness))
        followed = await asyncio.gather(*map(follow_async, streams, talkers))
        beat.cancel()
        return followed

    if case.driver == "asyncio":
        followed = asyncio.run(gather())
    else:
        with ThreadPoolExecutor(case.streams) as pool:
            followed = list(pool.map(follow, streams, talkers))
    ends_s = [out.pieces[-1].at_s + talker.started_s for out, talker in zip(followed, talkers, strict=True)]
    return _Played(
        followed,
        max(ends_s) - base_s,
        time.process_time() - cpu_s,
        counters.batches - batches,
        counters.blocks - blocks,
        max(lateness),
    )


async def _heartbeat(lateness: list[float]) -> None:
    """Notes by how much each short sleep is overslept: as long as that, nothing else in the loop could run."""
    while True:
        started_s = time.perf_counter()
        await asyncio.sleep(0.005)
        lateness.append(time.perf_counter() - started_s - 0.005)


def _rounded(value: Any) -> float:
    return round(float(value), 4)
