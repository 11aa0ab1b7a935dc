# SPDX-License-Identifier: Apache-2.0
"""The plan, in integers: whatever runs has what it needs, nothing waits for ever, and the window is kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockwave.engine.plan import Pass, Shape

shapes = st.sampled_from([(True,), (False,), (True, True), (False, True), (True, True, True), (False, True, True)])


class Simulation:
    """Runs a pass with random batches and arrivals, and checks every task against the dependencies themselves."""

    def __init__(self, waits: tuple[bool, ...], evaluations: int, first: int, blocks: int, window: int) -> None:
        self.waits, self.segments = waits, len(waits)
        self.plan = Pass(Shape(waits), evaluations, first, window)
        self.first, self.stop, self.window = first, first + blocks, window
        self.count = dict.fromkeys(range(first, first + blocks), 0)  # segments that each block has run

    def batch(self, room: int, segment: int | None) -> int:
        chosen: list[int] = []
        for block in self.plan.ready(segment):
            if len(chosen) == room:
                break
            chosen.append(block)
        kinds = {self.count[block] % self.segments for block in chosen}
        assert len(kinds) <= 1
        assert segment is None or kinds <= {segment}
        assert chosen == sorted(set(chosen))
        for block in chosen:
            self.check(block, chosen)
        for block in chosen:
            self.count[block] += 1
            assert self.plan.finish(block) == self.count[block]
        return len(chosen)

    def check(self, block: int, chosen: list[int]) -> None:
        done, segment = self.count[block], self.count[block] % self.segments
        assert block < self.plan.arrived
        assert block < self.plan.solved + self.window
        if self.waits[segment] and block > self.first:
            before = self.count[block - 1]
            assert before > done or (before == done and block - 1 in chosen)
        if segment > 0 and block + 1 < self.stop:
            # The next block stands exactly where this one looks: it has come as far, and has not gone on.
            assert self.count[block + 1] == done


@settings(max_examples=300)
@given(
    shapes,
    st.integers(1, 6),
    st.integers(0, 3),
    st.integers(1, 12),
    st.integers(0, 20),
    st.integers(1, 8),
    st.randoms(use_true_random=False),
)
def test_everything_runs_once_and_only_when_it_may(waits, evaluations, first, blocks, slack, room, random):
    window = evaluations * (len(waits) - 1) + 1 + slack
    run = Simulation(waits, evaluations, first, blocks, window)
    arrived = first
    while not run.plan.is_done:
        idle = run.batch(random.randint(1, room), None) == 0
        if random.random() < 0.3:
            run.batch(random.randint(1, room), random.randrange(len(waits)))
        if idle:  # then only because blocks are missing
            assert arrived < run.stop or run.plan.stop is None
        if idle or random.random() < 0.3:
            arrived = min(run.stop, arrived + random.randint(0 if not idle else 1, 3))
            closed = arrived == run.stop and (idle or random.random() < 0.5)
            run.plan.arrive(arrived, run.stop if closed else run.plan.stop)
    assert set(run.count.values()) == {evaluations * len(waits)}
    assert run.plan.progress == {}
    assert list(run.plan.ready()) == []


def test_a_wavefront_fills_batches():
    """36 evaluations with one look-ahead layer: the window of twice that keeps dozens of blocks running."""
    run = Simulation((True, True), 36, 0, 400, 80)
    run.plan.arrive(400, 400)
    sizes = []
    while not run.plan.is_done:
        sizes.append(run.batch(10**9, None))
    steady = sizes[200:-200]
    assert min(steady) >= 15


def test_too_small_a_window_is_refused():
    with pytest.raises(ValueError, match="window: got 36, expected at least 37"):
        Pass(Shape((True, True)), 36, 0, 36)
