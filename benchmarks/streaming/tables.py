# SPDX-License-Identifier: Apache-2.0
"""Tables of the page on streaming, from the JSON of the benchmark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]


def with_tables(text: str, results: Results) -> str:
    """``text`` with what stands between ``<!-- NAME -->`` and ``<!-- end -->`` written anew for every known NAME."""
    for name, table in TABLES.items():
        marked = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if marked.search(text):
            rows = table(results)
            text = marked.sub(lambda found, rows=rows: f"{found[1]}\n{rows}\n\n{found[2]}", text)
    return text


def look_ahead(results: Results) -> str:
    """Distance and work of every scheme, on both kinds of weights."""
    sections = [results[name]["rows"] for name in ("look-ahead", "look-ahead-released")]
    rows = [
        [here["scheme"], *(cell for row in (here, there) for cell in _distances(row))]
        for here, there in zip(*sections, strict=True)
    ]
    return _table(["", "embedded voice", "worst block", "work", "released size, random", "worst block", "work"], rows)


def first_audio(results: Results) -> str:
    """One row for every flow, rate and first chunk; lengths side by side."""
    found: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in results["first-audio"]["rows"]:
        key = row["flow"], row["codes_per_s"], row["first_chunk_codes"], row["needed_codes"]
        found.setdefault(key, {})[row["codes"]] = row["compute_median_s"]
    lengths = sorted({length for times in found.values() for length in times})
    rows = [
        [flow, f"{rate:g}", first, needed, *(_seconds(times[length]) for length in lengths)]
        for (flow, rate, first, needed), times in found.items()
    ]
    head = ["flow", "codes/s", "first chunk", "codes needed", *(f"{length} codes" for length in lengths)]
    return _table(head, rows)


def playback(results: Results) -> str:
    """The usual chunks, over the number of streams."""
    rows = [
        [
            row["flow"],
            row["streams"],
            _seconds(row["first_audio_median_s"]),
            _seconds(row["smallest_delay_worst_s"]),
            row["underruns_at_0"],
            row["underruns_at_200_ms"],
            row["underruns_at_chunk_lag"],
            row["underruns_at_1_s"],
            f"{row['cpu_per_audio']:.2f}",
        ]
        for row in usual_chunks(results["playback"])
        if row["driver"] == "threads"
    ]
    lag = f"{1000 * results['playback']['rows'][0]['chunk_lag_s']:.0f} ms"
    head = [
        "flow",
        "streams",
        "first audio",
        "least delay",
        "gaps at 0",
        "at 200 ms",
        f"at {lag}",
        "at 1 s",
        "CPU s per s of sound",
    ]
    return _table(head, rows)


def chunks(results: Results) -> str:
    """Other chunks, and streams in one event loop, beside the usual."""
    counts = {row["streams"] for row in results["playback"]["rows"] if row not in usual_chunks(results["playback"])}
    asynchronous = {row["streams"] for row in results["playback"]["rows"] if row["driver"] == "asyncio"}
    rows = [
        [
            f"{row['first_chunk_codes']}, {row['chunk_codes']}",
            row["streams"],
            row["driver"],
            _seconds(row["first_audio_median_s"]),
            _seconds(row["no_compute_delay_s"]),
            _seconds(row["smallest_delay_worst_s"]),
        ]
        for row in results["playback"]["rows"]
        if row["flow"] == results["playback"]["rows"][0]["flow"] and row["streams"] in counts | asynchronous
    ]
    return _table(["chunks", "streams", "driver", "first audio", "delay without compute", "least delay"], rows)


def holds(results: Results) -> str:
    """How many streams this machine holds, and what the flow costs in sound."""
    section = results["playback"]
    lines = []
    for flow, limits in section["holds"].items():
        parts = [f"behind a delay of {name} {_limit(limits[key])}" for key, name in _DELAYS.items()]
        distance = scientific(section["log_mel_l1_to_the_default_flow"][flow])
        lines.append(f"- {flow} (log-mel {distance} from the default flow): {'; '.join(parts)}.")
    return "\n".join(lines)


def usual_chunks(playback: Results) -> list[Mapping[str, Any]]:
    """Rows with the chunks of the first row."""
    first = playback["rows"][0]
    names = ("first_chunk_codes", "chunk_codes")
    return [row for row in playback["rows"] if all(row[name] == first[name] for name in names)]


def throughput(results: Results) -> str:
    """Ratios over one after another, and latencies."""
    rows = []
    for row in results["throughput"]["rows"]:
        low, high = row["seconds_of_each"]
        latencies = [f"{row[way]['latency_p50_s']:.2f} / {row[way]['latency_p95_s']:.2f}" for way in WAYS]
        ratios = [f"{row[way]['ratio']:.2f}" for way in ("together", "threads")]
        rows.append([row["flow"], f"{row['requests']} of {low:.2f} to {high:.2f} s", *ratios, *latencies])
    head = ["flow", "requests", "together", "8 threads", "one by one: p50 / p95, s", "together", "8 threads"]
    return _table(head, rows)


def late_joiner(results: Results) -> str:
    """Waits in batches."""
    rows = [
        [
            row["pair"],
            row["running_waits"],
            row["joiner_waits"],
            _batch(row["batch_before_s"], row["batch_with_both_s"]),
        ]
        for row in results["late-joiner"]["rows"]
    ]
    return _table(["", "the running one waits", "the joiner waits", "a batch: before, with both"], rows)


def provenance(results: Results) -> str:
    """What the numbers were measured on."""
    parts = []
    for name, section in results.items():
        machine = section["machine"]
        where = f"{machine['processor']}, {machine['cores']} cores, torch threads: {machine['threads']}"
        load = f"load {machine['load_average_1min']}"
        parts.append((f"{where}, torch {machine['versions']['torch']}", f"{name} ({load}{_quick(section)})"))
    places = dict.fromkeys(where for where, _ in parts)
    return "; ".join(f"{place}: {', '.join(name for where, name in parts if where == place)}" for place in places) + "."


TABLES: dict[str, Callable[[Results], str]] = {
    "look-ahead": look_ahead,
    "first-audio": first_audio,
    "playback": playback,
    "chunks": chunks,
    "holds": holds,
    "throughput": throughput,
    "late-joiner": late_joiner,
    "machine": provenance,
}
_DELAYS = {"chunk_lag": "one chunk", "1_s": "1 s"}
WAYS = ("one_by_one", "together", "threads")


def scientific(value: float) -> str:
    """2.4e-4; 0 for zero."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if value else "0"


def _distances(row: Mapping[str, Any]) -> list[str]:
    return [scientific(row["log_mel_l1"]), scientific(row["worst_block_l1"]), f"{row['work']:.2f}"]


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def _batch(before_s: float, both_s: float | None) -> str:
    return f"{1000 * before_s:.0f} ms, " + (f"{1000 * both_s:.0f} ms" if both_s is not None else "none")


def _limit(limit: Mapping[str, int | None]) -> str:
    held = "none" if limit["streams"] is None else f"{limit['streams']}"
    gaps = "none of those tried has gaps" if limit["starves_at"] is None else f"gaps from {limit['starves_at']} on"
    return f"{held} without a gap, {gaps}"


def _quick(section: Mapping[str, Any]) -> str:
    return ", quick run" if section["quick"] else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    assert {len(line) for line in lines} == {len(head)}, "a row of another width than the head"
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
