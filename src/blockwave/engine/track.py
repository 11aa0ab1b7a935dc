# SPDX-License-Identifier: Apache-2.0
"""One stream inside the engine: codes come in, passes over its blocks run, frames of mel come out."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..velocity import MIN_GUIDANCE, DiT, VoiceRows
from ..velocity.modulation import TimeGrid
from .emissions import Emission, Emissions
from .executor import Task
from .plan import Pass, Shape
from .state import BlockState, SolveState, Stage

_NEVER = 2**62  # blocks: more than any stream has


@dataclass
class Usage:
    """When a track waited and ran, on the clock of time.perf_counter.

    Attributes:
        first_codes_s, first_batch_s: when its first codes came, and when the first batch with blocks of it began.
        flow_s: wall time of the batches that it was part of.
    """

    first_codes_s: float | None = None
    first_batch_s: float | None = None
    flow_s: float = 0.0

    def ran(self, started_s: float, ended_s: float) -> None:
        """One batch with blocks of the track."""
        if self.first_batch_s is None:
            self.first_batch_s = started_s
        self.flow_s += ended_s - started_s

    @property
    def queue_s(self) -> float:
        """From the first codes until the first batch; 0 before that."""
        if self.first_codes_s is None or self.first_batch_s is None:
            return 0.0
        return self.first_batch_s - self.first_codes_s


class Track:
    """A stream's codes, noise, passes and finished mel.

    Args:
        dit: the network.
        shape: of its segments.
        stages, grid: of the solve.
        voice: constants of the voice.
        guidance: weight of classifier-free guidance.
        emissions: when frames leave.
    """

    def __init__(
        self,
        dit: DiT,
        shape: Shape,
        stages: tuple[Stage, ...],
        grid: TimeGrid,
        voice: VoiceRows,
        guidance: float,
        emissions: Emissions,
    ) -> None:
        self.dit, self.shape, self.stages, self.grid = dit, shape, stages, grid
        self.voice, self.guidance, self.emissions = voice, guidance, emissions
        self.solve = SolveState()
        self.finished: deque[Emission] = deque()  # in order, not yet taken
        self.evaluated_blocks = 0  # block evaluations of the conditional branch, as a measure of work
        self.usage = Usage()
        self.is_closed = False
        self.failure: BaseException | None = None  # what ended the track before its time
        self._is_gone = False
        self._noise: dict[int, Tensor] = {}
        self._constants: dict[int, list[Tensor]] = {}
        self._pending: list[tuple[Tensor, Tensor]] = []
        self.num_codes = 0  # that have come
        self._emitted = 0  # emissions done
        self._pass: Pass | None = None

    @property
    def num_blocks(self) -> int:
        """Blocks that have all their frames, or, once closed, all blocks."""
        frames, size = self.num_codes * self.dit.config.repeats, self.dit.config.block_size
        return -(-frames // size) if self.is_closed else frames // size

    @property
    def is_done(self) -> bool:
        return self.is_closed and self._first_unfinished >= self.num_blocks

    @property
    def is_broken(self) -> bool:
        return self.failure is not None

    @property
    def emitted_blocks(self) -> int:
        """Blocks that have left."""
        return min(self._first_unfinished, self.num_blocks)

    @property
    def branches(self) -> int:
        return 1 if self.guidance < MIN_GUIDANCE else 2

    def rows_of(self, codes: Tensor) -> Tensor:
        """What codes int64 [n] contribute to the inputs of their frames, [n, C]."""
        if self.usage.first_codes_s is None:
            self.usage.first_codes_s = time.perf_counter()
        return self.dit.condition(codes, self.voice, self.guidance).code_rows

    def add(self, rows: Tensor, noise: Tensor) -> None:
        """More codes as :meth:`rows_of` gives them, with the noise [repeats n, M] of their frames."""
        if self._is_gone:  # meanwhile
            return
        self._pending.append((rows.repeat_interleave(self.dit.config.repeats, 0), noise))
        self.num_codes += len(rows)
        self._cut()

    def close(self) -> None:
        """No more codes come."""
        if self._is_gone:
            return
        self.is_closed = True
        self._cut()

    def let_go(self) -> None:
        """Nothing runs any more: only what is finished stays, whoever still holds the track."""
        self._is_gone = True
        self.solve, self._pass = SolveState(), None
        self._noise, self._constants, self._pending = {}, {}, []
        if self.failure is not None:  # which would hold all that was being computed
            traceback.clear_frames(self.failure.__traceback__)

    @property
    def may_run(self) -> bool:
        """Whether a block may run now."""
        return next(self.ready(None), None) is not None

    def ready(self, segment: int | None) -> Iterator[int]:
        """Blocks that may run together now; see :meth:`Pass.ready`."""
        if self._pass is None:
            return iter(())
        return self._pass.ready(segment)

    def segment_of(self, block: int) -> int:
        assert self._pass is not None
        return self._pass.progress.get(block, 0) % self.shape.segments

    def task(self, block: int) -> Task:
        """The next task of a block that may run."""
        run = self._pass
        assert run is not None
        evaluation = run.progress.get(block, 0) // self.shape.segments
        stage = self.stages[evaluation]
        return Task(
            solve=self.solve,
            block=block,
            evaluation=evaluation,
            has_next=run.stop is None or block + 1 < run.stop,
            stage=stage,
            constants=self._constants[block][: None if stage.guidance else 1],
            guidance=self.guidance * stage.guidance,
            grid=self.grid,
        )

    def is_whole(self, blocks: Sequence[int]) -> bool:
        """Whether these are all blocks of the pass that are not solved, at one evaluation: none waits for another."""
        run = self._pass
        assert run is not None
        evaluations = {run.progress.get(block, 0) for block in blocks}
        return run.stop is not None and len(blocks) == run.stop - run.solved and len(evaluations) == 1

    def did(self, blocks: Sequence[int], segments: int) -> None:
        """So many segments of these blocks have run."""
        run = self._pass
        assert run is not None
        for block in blocks:
            for _ in range(segments):
                self.evaluated_blocks += run.finish(block) % self.shape.segments == 0
        self._emit()

    @property
    def _first_unfinished(self) -> int:
        return self.emissions.end(self._emitted - 1) if self._emitted else 0

    def _cut(self) -> None:
        """Cuts what has come into blocks, and lets the current pass know."""
        size, first = self.dit.config.block_size, self._first_known()
        if self._pending and first < self.num_blocks:
            constants, noise = (torch.cat(parts) for parts in zip(*self._pending, strict=True))
            count = self.num_blocks - first
            null = [self.voice.null_row] if self.branches == 2 else []
            for i in range(count):
                span = slice(i * size, (i + 1) * size)
                self._constants[first + i] = [constants[span], *null]
                self._noise[first + i] = noise[span]
            self._pending = [(constants[count * size :], noise[count * size :])]
        self._advance_pass()

    def _first_known(self) -> int:
        return max(self._noise, default=self._first_unfinished - 1) + 1

    def _advance_pass(self) -> None:
        first, ends = self._first_unfinished, self.emissions
        if self._pass is None and (first < self.num_blocks or not self.is_closed):
            window = ends.window if ends.look_ahead is None else None
            self._pass = Pass(self.shape, len(self.stages), first, window or _NEVER)
            self.solve.blocks.clear()
            exact = ends.look_ahead is None
            self.solve.settled = _NEVER if exact else ends.end(self._emitted)
        if self._pass is None:
            return
        horizon = _NEVER if ends.look_ahead is None else ends.end(self._emitted) + ends.look_ahead
        arrived = min(self.num_blocks, horizon)
        stop = arrived if self.is_closed or arrived == horizon else None
        self._pass.arrive(arrived, stop)
        for block in range(max(self._pass.solved, max(self.solve.blocks, default=-1) + 1), arrived):
            self.solve.blocks[block] = BlockState(self._noise[block], self._noise[block])

    def _emit(self) -> None:
        run, exact = self._pass, self.emissions.look_ahead is None
        assert run is not None
        while True:
            first, end = self._first_unfinished, self.emissions.end(self._emitted)
            end = min(end, self.num_blocks) if self.is_closed else end
            if first >= end or run.solved < end or not (exact or run.is_done):
                break
            seen = [] if exact else [self.solve.blocks[block].x for block in range(end, run.solved)]
            mel = torch.cat([self.solve.blocks[block].x for block in range(first, end)])
            self.finished.append(Emission(mel, torch.cat(seen) if seen else mel[:0]))
            self._emitted += 1
            for block in range(first, end):
                del self.solve.blocks[block], self._noise[block], self._constants[block]
            if not exact:
                break
        if run.is_done:
            self._pass = None
            self._advance_pass()
        if self.is_done:
            self.solve.kept.clear()
