# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of playback and of waits, on cases whose answers are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.streaming.late_joiner import Waits, waits
from benchmarks.streaming.playback import limits
from benchmarks.streaming.player import Chunking, Piece, smallest_delay_s, underruns

RATE = 100


def pieces_of(*rows: tuple[float, int]) -> list[Piece]:
    """(when, samples) one after another."""
    pieces, first = [], 0
    for at_s, samples in rows:
        pieces.append(Piece(at_s, first, samples))
        first += samples
    return pieces


@pytest.mark.parametrize(
    ("rows", "delay_s"),
    [
        (((7.0, 50),), 0.0),  # whenever it comes
        (((1.0, 100), (1.9, 100), (2.5, 100)), 0.0),  # always ahead
        (((1.0, 100), (2.0, 100)), 0.0),  # just in time
        (((1.0, 100), (2.25, 100)), 0.25),
        (((1.0, 100), (2.25, 100), (3.75, 10)), 0.75),  # the worst of two
        (((1.0, 10), (1.0, 0), (9.0, 0)), 0.0),  # nothing to play in the later ones
        (((0.5, 0), (1.0, 100), (2.25, 100)), 0.25),  # the first that sounds is the first audio
    ],
)
def test_smallest_delay(rows, delay_s):
    assert smallest_delay_s(pieces_of(*rows), RATE) == pytest.approx(delay_s)


def test_underruns():
    late = pieces_of((1.0, 100), (2.25, 100), (3.75, 10))
    assert underruns(late, RATE, 0) == (2, pytest.approx(0.75))  # after a gap the player is as late as the gap was long
    assert underruns(late, RATE, 0.25) == (1, pytest.approx(0.5))
    assert underruns(late, RATE, 0.75) == (0, 0)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1).filter(
        lambda rows: any(n for _, n in rows)
    )
)
def test_the_smallest_delay_is_the_smallest(rows):
    """With it nothing runs dry, with a little less something does; its gaps without delay add up to it."""
    at, timed = 0, []
    for wait, samples in rows:
        at += wait
        timed.append((at / RATE, samples))
    pieces = pieces_of(*timed)
    delay_s = smallest_delay_s(pieces, RATE)
    assert delay_s >= 0
    assert underruns(pieces, RATE, delay_s)[0] == 0
    assert underruns(pieces, RATE, 0)[1] == pytest.approx(delay_s)
    if delay_s:
        assert underruns(pieces, RATE, delay_s - 0.005)[0] >= 1


def test_codes_that_an_emission_needs():
    chunking = Chunking(first_codes=12, chunk_codes=36, ahead_codes=12, num_codes=100)
    assert [chunking.needed(n) for n in (0, 12, 13, 48, 49, 84, 85, 100)] == [24, 24, 60, 60, 96, 96, 100, 100]


def test_waits():
    running, joining, both = frozenset({0}), frozenset({1}), frozenset({0, 1})
    batches = [running, running, joining, joining, both, joining, running, joining, joining]
    assert waits(batches, 2, running) == Waits(before=0, after=2, joiner=0)
    assert waits([running, running, running, both], 1, running) == Waits(before=0, after=0, joiner=2)
    assert waits([running, joining, running, both], 3, running) == Waits(before=1, after=0, joiner=-2)


def test_limits():
    def rows(*gaps: int) -> list[dict[str, int]]:
        return [{"streams": 2**i, "gaps": gap} for i, gap in enumerate(gaps)]

    assert limits(rows(0, 0, 3, 9), "gaps") == {"streams": 2, "starves_at": 4}
    assert limits(rows(0, 1, 0), "gaps") == {"streams": 1, "starves_at": 2}
    assert limits(rows(2, 3), "gaps") == {"streams": None, "starves_at": 1}
    assert limits(rows(0, 0), "gaps") == {"streams": 2, "starves_at": None}
