# SPDX-License-Identifier: Apache-2.0
"""One segment of the network on a batch of blocks: any streams, any evaluations, neighbours in the batch or kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from ..blocks import NO_BLOCK, BlockTable
from ..ops.block_attention import BlockLayout
from ..velocity import DiT
from ..velocity.guidance import guide
from ..velocity.modulation import TimeGrid
from ..velocity.rotary import rotary_table
from ..velocity.segments import KeyValue, Segment, SegmentBatch, run_segment, segments_of
from .state import SolveState, Stage, advance

_KEPT_LAYOUTS = 256


@dataclass(frozen=True, eq=False)
class Task:
    """One segment at one evaluation of one block.

    Attributes:
        solve: the stream's state.
        block, evaluation: which.
        has_next: the solve has a block after this one.
        stage: time of the evaluation and what follows from its velocity.
        constants: constant part of the input, [S, C] or [1, C], one for every branch.
        guidance: weight of the guidance where there are two branches.
        grid: modulations of the solve's times.
    """

    solve: SolveState
    block: int
    evaluation: int
    has_next: bool
    stage: Stage
    constants: Sequence[Tensor]
    guidance: float
    grid: TimeGrid

    @property
    def num_frames(self) -> int:
        return len(self.solve.blocks[self.block].x)


@dataclass(frozen=True, eq=False)
class _Item:
    """One branch of one task, in packed order."""

    task: Task
    branch: int

    def key(self, offset: int = 0) -> tuple[int, int, int, int]:
        return id(self.task.solve), self.branch, self.task.block + offset, self.task.evaluation


@dataclass(frozen=True, eq=False)
class _Frames:
    """What all segments know of the packed frames."""

    lengths: list[int]
    ranges: list[tuple[int, int]]
    cos: Tensor
    sin: Tensor
    grid: TimeGrid
    rows: int | Tensor


class Executor:
    """Runs batches of tasks on one network.

    Args:
        dit: the loaded network.
    """

    def __init__(self, dit: DiT) -> None:
        self.dit, self.config = dit, dit.config
        self.segments = segments_of(dit.config)
        self.device = dit.final.weight.device
        self._layouts: OrderedDict[tuple[object, ...], dict[tuple[int, int], BlockLayout]] = OrderedDict()

    def run(self, index: int, tasks: Sequence[Task], to_the_end: bool = False) -> None:
        """Runs segment ``index`` for all tasks and writes what follows into their states.

        Args:
            to_the_end: run the later segments as well; every task's next block has to be among the tasks.
        """
        items = [_Item(task, branch) for task in tasks for branch in range(len(task.constants))]
        items.sort(key=lambda item: item.task.num_frames < self.config.block_size)  # full blocks first; stable
        h, qkv = self._entry(self.segments[index], tasks, items)
        frames = self._frames(items)
        for segment in self.segments[index:]:
            result = run_segment(self.dit, segment, h, qkv, self._batch(segment, items, frames))
            self._keep(items, frames.ranges, result.kept)
            if result.qkv is None:
                self._advance(tasks, items, frames.ranges, result.out)
                return
            if not to_the_end:
                self._let_wait(items, frames.ranges, result.out, result.qkv)
                return
            h, qkv = result.out, result.qkv

    def _entry(self, segment: Segment, tasks: Sequence[Task], items: Sequence[_Item]) -> tuple[Tensor, Tensor | None]:
        if not segment.is_first:
            waiting = [item.task.solve.blocks[item.task.block].waiting[item.branch] for item in items]
            return torch.cat([h for h, _ in waiting]), torch.cat([qkv for _, qkv in waiting])
        inputs = torch.cat([task.solve.blocks[task.block].input for task in tasks])
        projected = linear(inputs, self.dit.input.weight[:, : self.config.mel_dim])
        rows = dict(zip(map(id, tasks), projected.split([task.num_frames for task in tasks]), strict=True))
        return torch.cat([rows[id(item.task)] + item.task.constants[item.branch] for item in items]), None

    def _frames(self, items: Sequence[_Item]) -> _Frames:
        lengths = [item.task.num_frames for item in items]
        stops = np.cumsum(lengths).tolist()
        ranges = [(stop - length, stop) for stop, length in zip(stops, lengths, strict=True)]
        firsts = np.array([item.task.block * self.config.block_size for item in items])
        starts = np.array([start for start, _ in ranges])
        positions = np.arange(stops[-1]) + np.repeat(firsts - starts, lengths)
        dtype = self.dit.final.weight.dtype
        cos, sin = rotary_table(positions, self.config.head_dim, self.config.rope_theta, dtype, self.device)
        return _Frames(lengths, ranges, cos, sin, *self._modulation(items, lengths))

    def _batch(self, segment: Segment, items: Sequence[_Item], frames: _Frames) -> SegmentBatch:
        places = {item.key(): i for i, item in enumerate(items)}
        before = [self._place(places, item, -1, item.task.block > 0 and bool(segment.looks_back)) for item in items]
        after = [self._place(places, item, 1, item.task.has_next and segment.looks_ahead) for item in items]
        left = [item for item, place in zip(items, before, strict=True) if place is None]
        right = [item for item, place in zip(items, after, strict=True) if place is None]
        kept = {layer: _stack([self._kept(item, layer) for item in left]) for layer in segment.looks_back if left}
        neighbours = [item.task.solve.blocks[item.task.block + 1] for item in right]
        waiting = [block.waiting[item.branch][1] for block, item in zip(neighbours, right, strict=True)]
        return SegmentBatch(
            layouts=self._layouts_of(frames.lengths, before, after, [len(block.x) for block in neighbours]),
            cos=frames.cos,
            sin=frames.sin,
            grid=frames.grid,
            rows=frames.rows,
            before=kept,
            after=_stack([(qkv[:, 1], qkv[:, 2]) for qkv in waiting]) if waiting else None,
        )

    @staticmethod
    def _place(places: dict[tuple[int, int, int, int], int], item: _Item, offset: int, exists: bool) -> int | None:
        """Index of a neighbour in the batch, None for one outside it, NO_BLOCK where none is asked for."""
        return places.get(item.key(offset)) if exists else NO_BLOCK

    @staticmethod
    def _kept(item: _Item, layer: int) -> KeyValue:
        return item.task.solve.kept[item.task.block - 1, item.task.evaluation, layer][item.branch]

    def _modulation(self, items: Sequence[_Item], lengths: Sequence[int]) -> tuple[TimeGrid, int | Tensor]:
        grids = list({id(item.task.grid): item.task.grid for item in items}.values())
        first_row = dict(zip(map(id, grids), np.cumsum([0, *(len(grid.times) for grid in grids)]), strict=False))
        rows = [int(first_row[id(i.task.grid)]) + i.task.grid.row(i.task.stage.time) for i in items]
        grid = grids[0] if len(grids) == 1 else TimeGrid.joined(grids)
        if len(set(rows)) == 1:
            return grid, rows[0]
        return grid, torch.from_numpy(np.repeat(rows, lengths)).to(self.device)

    def _layouts_of(
        self,
        lengths: Sequence[int],
        before: Sequence[int | None],
        after: Sequence[int | None],
        right_lengths: Sequence[int],
    ) -> dict[tuple[int, int], BlockLayout]:
        signature = (*lengths, -2, *before, -2, *after, -2, *right_lengths)
        if signature in self._layouts:
            self._layouts.move_to_end(signature)
            return self._layouts[signature]
        size, count = self.config.block_size, len(lengths)
        left_lengths = [size] * sum(place is None for place in before)  # a block with a follower is full
        nowhere = [NO_BLOCK] * count
        tables = {
            (0, 0): BlockTable.with_outside(size, lengths, nowhere, nowhere, []),
            (1, 0): BlockTable.with_outside(size, lengths, _numbered(before, count), nowhere, left_lengths),
            (0, 1): BlockTable.with_outside(size, lengths, nowhere, _numbered(after, count), right_lengths),
            (1, 1): BlockTable.with_outside(
                size,
                lengths,
                _numbered(before, count),
                _numbered(after, count + len(left_lengths)),
                [*left_lengths, *right_lengths],
            ),
        }
        layouts = {reach: BlockLayout(table, self.device) for reach, table in tables.items()}
        self._layouts[signature] = layouts
        if len(self._layouts) > _KEPT_LAYOUTS:
            self._layouts.popitem(last=False)
        return layouts

    def _keep(self, items: Sequence[_Item], ranges: Sequence[tuple[int, int]], kept: Mapping[int, KeyValue]) -> None:
        """Keeps keys and values for blocks that come later, and drops what was asked for the last time."""
        places = {item.key() for item in items}
        for layer, (k, v) in kept.items():
            for item, (start, stop) in zip(items, ranges, strict=True):
                task, solve = item.task, item.task.solve
                if (task.has_next and item.key(1) not in places) or task.block + 1 == solve.settled:
                    pairs = solve.kept.setdefault((task.block, task.evaluation, layer), [])
                    pairs.append((k[start:stop].clone(), v[start:stop].clone()))
                if task.block != solve.settled and item.branch == len(task.constants) - 1:
                    solve.kept.pop((task.block - 1, task.evaluation, layer), None)

    def _let_wait(self, items: Sequence[_Item], ranges: Sequence[tuple[int, int]], h: Tensor, qkv: Tensor) -> None:
        for item in items:
            item.task.solve.blocks[item.task.block].waiting = []
        for item, (start, stop) in zip(items, ranges, strict=True):  # branches of a task come in order
            waiting = item.task.solve.blocks[item.task.block].waiting
            waiting.append((h[start:stop].clone(), qkv[start:stop].clone()))

    def _advance(
        self, tasks: Sequence[Task], items: Sequence[_Item], ranges: Sequence[tuple[int, int]], out: Tensor
    ) -> None:
        branches: dict[int, dict[int, Tensor]] = {id(task): {} for task in tasks}
        for item, (start, stop) in zip(items, ranges, strict=True):
            branches[id(item.task)][item.branch] = out[start:stop]
        for task in tasks:
            parts, block = branches[id(task)], task.solve.blocks[task.block]
            velocity = guide(parts[0], parts[1], task.guidance) if len(parts) == 2 else parts[0].clone()
            block.waiting = []
            advance(block, velocity, task.stage)


def _stack(pairs: Sequence[KeyValue]) -> KeyValue:
    return torch.cat([k for k, _ in pairs]), torch.cat([v for _, v in pairs])


def _numbered(places: Sequence[int | None], first_outside: int) -> list[int]:
    """Outside neighbours get numbers in order."""
    numbered, outside = [], first_outside
    for place in places:
        numbered.append(outside if place is None else place)
        outside += place is None
    return numbered
