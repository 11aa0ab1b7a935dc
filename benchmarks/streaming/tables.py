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
    """Every case: when sound comes, how late a player has to start, and how often it runs dry."""
    rows = [
        [
            row["flow"] + (", asyncio" if row["driver"] == "asyncio" else ""),
            f"{row['first_chunk_codes']}, {row['chunk_codes']}",
            row["streams"],
            _seconds(row["first_audio_median_s"]),
            _seconds(row["smallest_delay_worst_s"]),
            _seconds(row["no_compute_delay_s"]),
            f"{row['underruns_at_0']}, {row['underruns_at_200_ms']}, {row['underruns_at_chunk_lag']}",
            f"{row['cpu_per_audio']:.2f}",
        ]
        for row in results["playback"]["rows"]
    ]
    head = ["flow", "chunks", "streams", "first audio", "least delay", "without compute", "dry", "CPU s per s"]
    return _table(head, rows)


def holds(results: Results) -> str:
    """How many streams this machine holds."""
    found = results["playback"]["holds"].items()
    rows = [[flow, _count(limit["streams"]), _count(limit["starves_at"])] for flow, limit in found]
    return _table(["flow", "streams without a gap", "gaps from"], rows)


def throughput(results: Results) -> str:
    """Ratios over one after another, and latencies."""
    rows = []
    for row in results["throughput"]["rows"]:
        low, high = row["seconds_of_each"]
        latencies = [f"{row[way]['latency_p50_s']:.2f} / {row[way]['latency_p95_s']:.2f}" for way in WAYS]
        ratios = [f"{row[way]['ratio']:.2f}" for way in ("together", "threads")]
        rows.append([row["flow"], f"{row['requests']} of {low:.2f} to {high:.2f} s", *ratios, *latencies])
    head = ["flow", "requests", "together", "8 threads", "one by one: p50 / p95", "together", "8 threads"]
    return _table(head, rows)


def late_joiner(results: Results) -> str:
    """Waits in batches."""
    rows = [
        [row["pair"], row["running_waits"], row["joiner_waits"], _batch(row["batch_before_s"], row["batch_with_both_s"])]
        for row in results["late-joiner"]["rows"]
    ]
    return _table(["", "the running one waits", "the joiner waits", "a batch: before, with both"], rows)


def provenance(results: Results) -> str:
    """What the numbers were measured on."""
    parts = []
    for name, section in results.items():
        machine = section["machine"]
        where = f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads"
        load = f"load {machine['load_average_1min']}"
        parts.append((f"{where}, torch {machine['versions']['torch']}", f"{name} ({load}{_quick(section)})"))
    places = dict.fromkeys(where for where, _ in parts)
    return "; ".join(f"{place}: {', '.join(name for where, name in parts if where == place)}" for place in places) + "."


TABLES: dict[str, Callable[[Results], str]] = {
    "look-ahead": look_ahead,
    "first-audio": first_audio,
    "playback": playback,
    "holds": holds,
    "throughput": throughput,
    "late-joiner": late_joiner,
    "machine": provenance,
}
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


def _count(value: int | None) -> str:
    return "none" if value is None else str(value)


def _quick(section: Mapping[str, Any]) -> str:
    return ", quick run" if section["quick"] else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
