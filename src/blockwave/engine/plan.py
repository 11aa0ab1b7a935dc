# SPDX-License-Identifier: Apache-2.0
"""What may run next, in integers alone.

A pass solves a range of blocks of one stream. A block's progress counts the segments that it has finished: after
``evaluations * segments`` of them it is solved. One segment at one evaluation of one block is a task; a batch is a set
of tasks of the same segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shape:
    """What all passes over one network have in common.

    Attributes:
        waits: for every segment, whether a block runs it only after, or together with, the block before. It has to
            where the segment looks back; after the first segment it always does, so that no block overtakes one that
            still has to see it.
    """

    waits: tuple[bool, ...]

    @property
    def segments(self) -> int:
        return len(self.waits)


@dataclass
class Pass:
    """Progress of the blocks ``first`` .. ``stop`` (excluded) of one stream.

    Attributes:
        shape: of the network.
        evaluations: of the solve.
        first: first block; what lies before it is known to the executor, or does not exist.
        window: most blocks that are under way at once, counted from the first that is not solved.
        arrived: blocks before this index may run.
        stop: end of the range, or None while it is open.
        progress: block -> finished segments, for blocks that are under way.
        solved: blocks before this index are solved.
    """

    shape: Shape
    evaluations: int
    first: int
    window: int
    arrived: int = 0
    stop: int | None = None
    progress: dict[int, int] = field(default_factory=dict)
    solved: int = field(init=False)

    def __post_init__(self) -> None:
        self.solved = self.first
        self.arrived = max(self.arrived, self.first)
        least = self.evaluations * (self.shape.segments - 1) + 1
        if self.window < least:
            raise ValueError(
                f"window: got {self.window}, expected at least {least}: a block waits for those ahead of it"
            )

    @property
    def goal(self) -> int:
        """Progress of a solved block."""
        return self.evaluations * self.shape.segments

    @property
    def is_done(self) -> bool:
        return self.stop is not None and self.solved >= self.stop

    def arrive(self, arrived: int, stop: int | None = None) -> None:
        """Blocks before ``arrived`` may run now; ``stop`` closes the range."""
        self.arrived, self.stop = max(self.arrived, arrived), stop

    def done(self, block: int) -> int:
        """Finished segments of a block."""
        return self.goal if block < self.solved else self.progress.get(block, 0)

    def ready(self, segment: int | None = None) -> Iterator[int]:
        """Blocks whose next task may run together, all of one segment, in ascending order.

        Without ``segment`` it is that of the first block that may run.
        """
        chosen: set[int] = set()
        for block in range(self.solved, min(self.arrived, self.solved + self.window)):
            done = self.progress.get(block, 0)
            if done >= self.goal or (segment is not None and done % self.shape.segments != segment):
                continue
            if self._may_run(block, done, chosen):
                segment = done % self.shape.segments
                chosen.add(block)
                yield block

    def finish(self, block: int) -> int:
        """One more segment of ``block`` is done; returns its progress."""
        self.progress[block] = done = self.progress.get(block, 0) + 1
        while self.progress.get(self.solved, 0) == self.goal:
            del self.progress[self.solved]
            self.solved += 1
        return done

    def _may_run(self, block: int, done: int, chosen: set[int]) -> bool:
        segment = done % self.shape.segments
        if self.shape.waits[segment] and block > self.first:
            before = self.done(block - 1)
            if before < done or (before == done and block - 1 not in chosen):
                return False
        if segment == 0 or block + 1 == self.stop:
            return True
        return block + 1 < self.arrived and self.done(block + 1) >= done
