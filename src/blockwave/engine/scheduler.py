# SPDX-License-Identifier: Apache-2.0
"""The loop: which streams' blocks share the next batch."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import OptionError
from .blame import blamed_on
from .counters import Counters
from .executor import Executor, Task
from .plan import Shape
from .track import Track

# Blocks of all branches in one batch: 340 blocks are 8160 frames, whose activations take some 0.4 GB at released size.
MAX_BATCH_BLOCKS = 340
# Blocks that work in bulk may take of a batch while there are live streams.
MAX_BULK_BLOCKS = 64


@dataclass
class _Turn:
    """A track's place in the queue.

    Attributes:
        started: it has run at least once.
        last_step: when it last ran, or when it came.
        number: how many came before it.
    """

    started: bool
    last_step: int
    number: int


@dataclass(frozen=True)
class BatchRecord:
    """One batch, for pictures and measurements.

    Attributes:
        started_s, ended_s: on the clock of time.perf_counter.
        segment: of the network.
        tasks: (track, block, evaluation); tracks are numbered as they were added.
    """

    started_s: float
    ended_s: float
    segment: int
    tasks: tuple[tuple[int, int, int], ...]


class Scheduler:
    """Runs tracks on one executor. Not thread-safe: its owner holds a lock.

    A batch holds tasks of one segment. Live tracks go before work in bulk, started ones before new ones; among them the
    one that waited longest leads, and its first block that may run decides the segment; others fill the batch with what
    they have of the same. A track leads as soon as it has waited ``PATIENCE`` batches, so none starves.

    Args:
        executor: of the network.
        max_blocks: blocks in a batch, all branches counted.
        counters: where batches are counted.
    """

    PATIENCE = 16

    def __init__(
        self, executor: Executor, max_blocks: int = MAX_BATCH_BLOCKS, counters: Counters | None = None
    ) -> None:
        if max_blocks < 2:
            raise OptionError(f"max_batch_blocks: got {max_blocks}, expected at least 2, a block with both branches")
        self.executor, self.max_blocks = executor, max_blocks
        first, *later = executor.segments
        self.shape = Shape((bool(first.looks_back), *(True for _ in later)))
        self.counters = Counters() if counters is None else counters
        self.records: list[BatchRecord] | None = None  # set to a list to record batches
        self._turns: dict[Track, _Turn] = {}
        self._step = self._num_added = 0

    def add(self, track: Track) -> None:
        """A new track; it runs as its blocks arrive."""
        self._turns[track] = _Turn(False, self._step, self._num_added)
        self._num_added += 1

    def remove(self, track: Track) -> None:
        """The track's blocks are not run again."""
        self._turns.pop(track, None)

    def __len__(self) -> int:
        return len(self._turns)

    def step(self) -> bool:
        """Runs one batch; False where no track has a block that may run. What fails ends the tracks of the batch."""
        segment, chosen, room = self._choose()
        if segment is None:
            return False
        # Where no block of the batch waits for one outside it, the evaluation runs through.
        whole = segment == 0 and all(track.is_whole(blocks) for track, blocks in chosen.items())
        tasks = [track.task(block) for track, blocks in chosen.items() for block in blocks]
        started_s = time.perf_counter()
        try:
            with blamed_on(*chosen):
                self.executor.run(segment, tasks, to_the_end=whole)
                ended_s = time.perf_counter()
                self._record(started_s, ended_s, segment, chosen, tasks)
                for track, blocks in chosen.items():
                    track.usage.ran(started_s, ended_s)
                    track.did(blocks, self.shape.segments if whole else 1)
                    self._turns[track] = replace(self._turns[track], started=True, last_step=self._step)
                self.counters.flow_s += ended_s - started_s
        finally:
            for track in chosen:
                if track.is_broken:
                    self.remove(track)
        self._step += 1
        self.counters.batches += 1
        self.counters.tasks += len(tasks)
        self.counters.blocks += self.max_blocks - room
        return True

    def _choose(self) -> tuple[int | None, dict[Track, list[int]], int]:
        """The segment, the blocks of every track, and the room that is left."""
        segment: int | None = None
        chosen: dict[Track, list[int]] = {}
        room = self.max_blocks
        share = max(0, self.max_blocks - MAX_BULK_BLOCKS) if any(t.emissions.is_live for t in self._turns) else 0
        for track in sorted(self._turns, key=self._order):
            # While somebody listens, work in bulk keeps its share of a batch, and the batch short.
            spare = room if track.emissions.is_live else room - share
            for block in track.ready(segment):
                if spare < track.branches:
                    break
                spare -= track.branches
                segment = track.segment_of(block)
                chosen.setdefault(track, []).append(block)
                room -= track.branches
        return segment, chosen, room

    def _record(
        self,
        started_s: float,
        ended_s: float,
        segment: int,
        chosen: Mapping[Track, list[int]],
        tasks: Sequence[Task],
    ) -> None:
        if self.records is None:
            return
        numbers = [self._turns[track].number for track, blocks in chosen.items() for _ in blocks]
        what = tuple((number, task.block, task.evaluation) for number, task in zip(numbers, tasks, strict=True))
        self.records.append(BatchRecord(started_s, ended_s, segment, what))

    def _order(self, track: Track) -> tuple[bool, bool, int]:
        turn = self._turns[track]
        waits_too_long = self._step - turn.last_step > self.PATIENCE
        if waits_too_long:
            return False, False, turn.last_step
        return not track.emissions.is_live, not turn.started, turn.last_step
