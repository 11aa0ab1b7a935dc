# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing and peak memory of callables that return a tensor."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

Run = Callable[[], Tensor]


@dataclass
class Series:
    """Times of one contestant, its extra peak memory and its last output."""

    seconds: list[float] = field(default_factory=list)
    extra_peak_mib: float = 0.0
    output: Tensor | None = None

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)


def interleaved(contestants: Mapping[str, Run], repeats: int, warmups: int = 1) -> dict[str, Series]:
    """Runs all contestants in turn, ``repeats`` rounds after ``warmups``; memory is taken in the warm-up rounds."""
    series = {name: Series() for name in contestants}
    for round_index in range(warmups + repeats):
        for name, run in contestants.items():
            if round_index < warmups:
                series[name].output, peak = with_peak_memory(run)
                series[name].extra_peak_mib = max(series[name].extra_peak_mib, peak)
                continue
            started = _now_s()
            run()
            series[name].seconds.append(_now_s() - started)
    return series


def with_peak_memory(run: Run) -> tuple[Tensor, float]:
    """The output, and MiB by which peak memory rose above what was in use before."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        output = run()
        torch.cuda.synchronize()
        return output, (torch.cuda.max_memory_allocated() - before) / 2**20
    ctypes.CDLL(None).malloc_trim(0)  # else memory kept by the allocator would hide what is taken next
    before = _status_kib("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, proc(5)
    output = run()
    return output, (_status_kib("VmHWM") - before) / 1024


def _status_kib(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"no {key} in /proc/self/status")


def _now_s() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
