# SPDX-License-Identifier: Apache-2.0
"""What a solve allocates, from torch's own record of every allocation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from blockwave.engine import Flow
from blockwave.mel.noise import seeded_noise
from blockwave.mel.solver import integrate
from blockwave.testing import random_dit, random_request, request_condition, sized_config


def peak_bytes(run) -> int:
    """Most bytes allocated at once while ``run`` runs, beyond what was there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run()
    events = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    return int(np.cumsum([event.nbytes() for event in events]).max())


def test_the_instrument_counts_bytes() -> None:
    def run() -> None:
        first = torch.ones(1000, 1000)
        del first
        torch.ones(3000, 1000)

    assert peak_bytes(run) == pytest.approx(12e6, rel=0.01)


def test_peak_memory_of_a_solve_grows_linearly() -> None:
    config = sized_config("tiny")
    dit, flow = random_dit(config), Flow(steps=2)
    grid = dit.time_grid(flow.times)

    @torch.inference_mode()
    def solve(frames: int) -> None:
        batch = dit.pack([request_condition(dit, random_request(config.dit, frames // 2, 50), 0.5)])
        noise = seeded_noise(0, frames, config.dit.mel_dim)
        integrate(lambda x, t: dit(x, batch, grid, grid.row(t)), noise, flow.points, flow.tableau)

    solve(48)  # what is made once is made now
    peaks = [peak_bytes(lambda frames=frames: solve(frames)) for frames in (8000, 16000, 32000)]
    ratios = [longer / shorter for shorter, longer in pairwise(peaks)]
    assert all(1.8 <= ratio <= 2.2 for ratio in ratios), (peaks, ratios)
