# SPDX-License-Identifier: Apache-2.0
"""The table of blocks holds every frame once, and its neighbours are those of the sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockwave.blocks import NO_BLOCK, BlockTable

lengths = st.lists(st.integers(1, 130), min_size=1, max_size=8)
sizes = st.integers(1, 40)


@given(lengths, sizes)
def test_every_frame_of_every_sequence_is_there_once(num_frames, size):
    table = BlockTable.from_lengths(num_frames, size)
    found = sorted(zip(table.frame_sequence.tolist(), table.frame_position.tolist(), strict=True))
    assert found == [(i, t) for i, count in enumerate(num_frames) for t in range(count)]
    assert table.num_frames == sum(num_frames)
    assert table.num_blocks == sum(-(-count // size) for count in num_frames)


@given(lengths, sizes)
def test_full_blocks_come_first_and_only_last_blocks_are_partial(num_frames, size):
    table = BlockTable.from_lengths(num_frames, size)
    assert (table.lengths[: table.num_full] == size).all()
    assert ((table.lengths[table.num_full :] >= 1) & (table.lengths[table.num_full :] < size)).all()
    partial = table.lengths < size
    assert (table.following[partial] == NO_BLOCK).all()
    assert partial.sum() == sum(count % size > 0 for count in num_frames)


@given(lengths, sizes)
def test_neighbours_are_symmetric_and_one_position_away(num_frames, size):
    table = BlockTable.from_lengths(num_frames, size)
    for block in range(table.num_blocks):
        before, after = table.previous[block], table.following[block]
        assert (before == NO_BLOCK) == (table.position[block] == 0)
        if before != NO_BLOCK:
            assert table.following[before] == block
            assert (table.sequence[before], table.position[before]) == (
                table.sequence[block],
                table.position[block] - 1,
            )
        if after != NO_BLOCK:
            assert table.previous[after] == block


@given(lengths, sizes)
def test_starts_and_frame_blocks_describe_runs_of_frames(num_frames, size):
    table = BlockTable.from_lengths(num_frames, size)
    for block, (start, length) in enumerate(zip(table.starts, table.lengths, strict=True)):
        own = np.flatnonzero(table.frame_block == block)
        assert own.tolist() == list(range(start, start + length))
        first = table.position[block] * size
        assert table.frame_position[own].tolist() == list(range(first, first + length))


@given(lengths, sizes, st.integers(0, 4), st.integers(0, 4))
def test_the_seen_blocks_are_those_within_reach(num_frames, size, back, ahead):
    table = BlockTable.from_lengths(num_frames, size)
    place = {(s, p): g for g, (s, p) in enumerate(zip(table.sequence.tolist(), table.position.tolist(), strict=True))}
    expected = [
        [place.get((s, p + distance), NO_BLOCK) for distance in range(-back, ahead + 1)]
        for s, p in zip(table.sequence.tolist(), table.position.tolist(), strict=True)
    ]
    assert table.neighbours(back, ahead).tolist() == expected


@given(lengths, sizes)
def test_sequences_without_partial_blocks_keep_their_order(num_frames, size):
    table = BlockTable.from_lengths([count * size for count in num_frames], size)
    assert table.sequence.tolist() == sorted(table.sequence.tolist())
    assert table.num_full == table.num_blocks


def test_no_sequence_is_an_empty_table():
    table = BlockTable.from_lengths([], 24)
    assert (table.num_blocks, table.num_frames, table.num_full) == (0, 0, 0)
    assert table.neighbours(1, 1).shape == (0, 3)


@pytest.mark.parametrize(("num_frames", "size"), [([3, 0], 24), ([-1], 24), ([3], 0)])
def test_lengths_below_one_are_refused(num_frames, size):
    with pytest.raises(ValueError, match=rf"got block_size {size} and lengths .*, expected all >= 1"):
        BlockTable.from_lengths(num_frames, size)
