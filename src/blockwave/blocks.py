# SPDX-License-Identifier: Apache-2.0
"""The table of blocks: whose each block is, which blocks are its neighbours, how many frames it holds.

Plain integers; no tensors. A batch is a list of blocks from any number of sequences. Frames are packed without
padding, full blocks first and partial last blocks after them, so that all full blocks of a batch are one view
``[G_full, S]`` of the packed frames ``[F]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

NO_BLOCK = -1


@dataclass(frozen=True, eq=False)
class BlockTable:
    """Blocks of a batch, in packed order.

    After the ``num_own`` blocks of the batch may stand outside blocks: they are seen, but see nothing themselves, and
    have no place in the packed frames of queries. Keys and values of a batch with outside blocks are the packed frames
    of all blocks.

    Attributes:
        block_size: frames per full block, S.
        lengths: int64 [G], frames in each block, 1..S; full blocks come first among the own.
        sequence: int64 [G], index of the sequence a block belongs to.
        position: int64 [G], index of the block inside its sequence.
        previous: int64 [G], packed index of the block before it in its sequence, or ``NO_BLOCK``.
        following: int64 [G], packed index of the block after it, or ``NO_BLOCK``.
        num_own: blocks of the batch itself.
    """

    block_size: int
    lengths: np.ndarray
    sequence: np.ndarray
    position: np.ndarray
    previous: np.ndarray
    following: np.ndarray
    num_own: int

    @classmethod
    def from_lengths(cls, num_frames: Sequence[int], block_size: int) -> BlockTable:
        """All blocks of whole sequences with ``num_frames`` frames each (each at least 1)."""
        if block_size < 1 or any(frames < 1 for frames in num_frames):
            raise ValueError(f"got block_size {block_size} and lengths {list(num_frames)}, expected all >= 1")
        frames = np.asarray(num_frames, np.int64)
        counts = -(-frames // block_size)
        sequence = np.repeat(np.arange(len(frames)), counts)
        firsts = np.cumsum(counts) - counts
        position = np.arange(len(sequence)) - firsts[sequence]
        lengths = np.minimum(block_size, frames[sequence] - position * block_size)

        order = np.argsort(lengths < block_size, kind="stable")  # full blocks first, else as given
        packed = np.empty_like(order)
        packed[order] = np.arange(len(order))
        natural = np.arange(len(order))
        previous = np.where(position > 0, packed[natural - 1], NO_BLOCK)
        is_last = position == counts[sequence] - 1
        following = np.where(is_last, NO_BLOCK, packed[(natural + 1) % max(len(order), 1)])
        columns = [column[order] for column in (lengths, sequence, position, previous, following)]
        return cls(block_size, columns[0], columns[1], columns[2], columns[3], columns[4], len(order))

    @classmethod
    def with_outside(
        cls,
        block_size: int,
        lengths: Sequence[int],
        previous: Sequence[int],
        following: Sequence[int],
        outside_lengths: Sequence[int],
    ) -> BlockTable:
        """Single blocks whose neighbours may be outside the batch.

        Args:
            lengths: frames of the own blocks, full blocks first.
            previous, following: for every own block an own index, ``len(lengths) + j`` for outside block j, or
                ``NO_BLOCK``.
            outside_lengths: frames of the outside blocks.
        """
        nowhere = [NO_BLOCK] * len(outside_lengths)
        alone = np.zeros(len(lengths) + len(outside_lengths), np.int64)
        frames = np.array([*lengths, *outside_lengths], np.int64)
        before, after = (np.array([*column, *nowhere], np.int64) for column in (previous, following))
        return cls(block_size, frames, alone, alone, before, after, len(lengths))

    @property
    def num_blocks(self) -> int:
        return self.num_own

    @property
    def num_frames(self) -> int:
        return int(self.lengths[: self.num_own].sum())

    @cached_property
    def num_full(self) -> int:
        return int((self.lengths[: self.num_own] == self.block_size).sum())

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 [G], first packed frame of every block."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def frame_block(self) -> np.ndarray:
        """int64 [F], the block of every packed frame."""
        return np.repeat(np.arange(self.num_own), self.lengths[: self.num_own])

    @cached_property
    def frame_sequence(self) -> np.ndarray:
        """int64 [F], the sequence of every packed frame."""
        return self.sequence[self.frame_block]

    @cached_property
    def frame_position(self) -> np.ndarray:
        """int64 [F], the place of every packed frame in its sequence, counted from 0."""
        offset = np.arange(self.num_frames) - self.starts[self.frame_block]
        return self.position[self.frame_block] * self.block_size + offset

    def neighbours(self, look_backward: int, look_ahead: int) -> np.ndarray:
        """int64 [num_own, look_backward + 1 + look_ahead]: blocks that a block sees, in order of time."""
        own = np.arange(self.num_own)
        behind = _walk(own, self.previous, look_backward)
        return np.stack([*reversed(behind), own, *_walk(own, self.following, look_ahead)], 1)


def _walk(blocks: np.ndarray, step: np.ndarray, count: int) -> list[np.ndarray]:
    """``count`` times from ``blocks`` along ``step``; past an end stays ``NO_BLOCK``."""
    reached = []
    for _ in range(count):
        blocks = np.where(blocks == NO_BLOCK, NO_BLOCK, step[blocks])
        reached.append(blocks)
    return reached
