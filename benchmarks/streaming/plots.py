# SPDX-License-Identifier: Apache-2.0
"""Pictures of the page on streaming, from the JSON of the benchmark."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from benchmarks.streaming.tables import usual_chunks
from blockwave.voice import write_atomically

Results = Mapping[str, Any]
_FLOOR = 1e-8  # where a difference of zero is drawn


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Writes streaming-NAME.svg for every picture whose sections are there."""
    matplotlib.rcParams["svg.hashsalt"] = "blockwave"  # the same numbers give the same file
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (needed, draw) in PICTURES.items():
        if not all(section in results for section in needed):
            continue
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        draw(figure, *(results[section] for section in needed))
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        path = folder / f"streaming-{name}.svg"
        write_atomically(path, buffer.getvalue())
        paths.append(path)
    return paths


def error_over_work(figure: Figure, embedded: Results, released: Results) -> None:
    """One line for every kind of weights: look-ahead 0, 1, 2, 3; the exact result and the window as marks."""
    axes = figure.add_subplot()
    for section, colour in ((embedded, "tab:blue"), (released, "tab:orange")):
        rows = {row["scheme"]: (row["work"], max(row["log_mel_l1"], _FLOOR)) for row in section["rows"]}
        steps = [point for name, point in rows.items() if name[-1].isdigit() and name.startswith("look-ahead")]
        axes.plot(*zip(*steps, strict=True), "o-", color=colour, label=section["weights"], markersize=5)
        for name, (work, error) in rows.items():
            if name.startswith("window"):
                axes.plot(work, error, "X", color=colour, markersize=9)
                axes.annotate("window", (work, error), (4, 7), textcoords="offset points", fontsize=8)
            elif "exact" in name:
                axes.plot(work, error, "*", color=colour, markersize=11)
        if section is embedded:
            for blocks, (work, error) in enumerate(steps):
                axes.annotate(f"{blocks}", (work, error), (5, 5), textcoords="offset points", fontsize=8)
    axes.annotate("exact: no difference", (1.0, _FLOOR), (10, -3), textcoords="offset points", fontsize=8)
    axes.set(yscale="log", ylim=(_FLOOR / 2, None), xlabel="evaluated blocks per emitted block")
    axes.set_ylabel("mean difference of the log-mel")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, title="blocks of look-ahead (0 to 3)", title_fontsize=8)


def delay_over_streams(figure: Figure, playback: Results) -> None:
    """How late a player has to start, over the number of streams."""
    axes = figure.add_subplot()
    usual = [row for row in usual_chunks(playback) if row["driver"] == "threads"]
    for flow in dict.fromkeys(row["flow"] for row in usual):
        points = [(row["streams"], max(row["smallest_delay_worst_s"], 0.01)) for row in usual if row["flow"] == flow]
        axes.plot(*zip(*points, strict=True), "o-", label=flow)
    axes.axhline(usual[0]["chunk_lag_s"], color="black", linewidth=0.8, linestyle="--", label="one chunk's codes")
    axes.axhline(usual[0]["no_compute_delay_s"], color="gray", linewidth=0.8, linestyle=":", label="without compute")
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks := sorted({row["streams"] for row in usual}), map(str, ticks))
    axes.set(xlabel="live streams at once", ylabel="least start delay of the worst, s", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def throughput_bars(figure: Figure, throughput: Results) -> None:
    """Speed over one after another."""
    axes = figure.add_subplot()
    rows = throughput["rows"]
    for offset, way, colour in ((-0.2, "together", "tab:blue"), (0.2, "threads", "tab:green")):
        places = [i + offset for i in range(len(rows))]
        axes.bar(places, [row[way]["ratio"] for row in rows], 0.38, color=colour, label=_WAYS[way])
    axes.axhline(1, color="black", linewidth=0.8)
    labels = [
        f"{row['requests']} of\n{row['seconds_of_each'][0]:.2g} to {row['seconds_of_each'][1]:.2g} s\n"
        + row["flow"].split(",")[0]
        for row in rows
    ]
    axes.set_xticks(range(len(rows)), labels, fontsize=7)
    axes.set(ylabel="speed over one after another", ylim=(0, 1.3 * max(axes.get_ylim())))
    axes.legend(fontsize=8, ncols=2, loc="upper center")


_WAYS = {"together": "one call on a list", "threads": "eight threads, a call each"}
PICTURES: dict[str, tuple[tuple[str, ...], Callable[..., None]]] = {
    "look-ahead": (("look-ahead", "look-ahead-released"), error_over_work),
    "playback": (("playback",), delay_over_streams),
    "throughput": (("throughput",), throughput_bars),
}
