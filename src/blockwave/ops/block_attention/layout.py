# SPDX-License-Identifier: Apache-2.0
"""Index tensors of a block table on one device, made once for a batch and shared by all layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...blocks import NO_BLOCK, BlockTable

# Blocks at the ends of their sequences see fewer or shorter blocks. While there are few kinds of them, as in a single
# request, each kind is attended without a mask; beyond that all ends share one masked call.
MAX_KINDS = 4


@dataclass(frozen=True)
class Group:
    """Blocks that all hold n frames and see m frames.

    Attributes:
        queries: int64 [g, n], packed frames.
        keys: int64 [g, m], packed frames.
        first: the queries are the packed frames from ``first`` on, and the keys are the queries: no gathering.
    """

    queries: Tensor
    keys: Tensor
    first: int | None = None


@dataclass(frozen=True)
class Ends:
    """Blocks at ends of their sequences, of many kinds. Places without a frame repeat a frame of the block itself.

    Attributes:
        queries: int64 [e, S], packed frames.
        keys: int64 [e, (back + 1 + ahead) S], packed frames.
        visible: bool [e, 1, 1, (back + 1 + ahead) S], False where a key has no frame; never all False.
        rows: int64 [r], flat places of ``queries`` that hold real frames.
        frames: int64 [r], which packed frames these are.
    """

    queries: Tensor
    keys: Tensor
    visible: Tensor
    rows: Tensor
    frames: Tensor


@dataclass(frozen=True)
class ReachPlan:
    """How one reach (back, ahead) is computed.

    Attributes:
        groups: blocks without a mask, the whole ones first.
        ends: the others, or None.
    """

    groups: tuple[Group, ...]
    ends: Ends | None


class BlockLayout:
    """A :class:`BlockTable` on a device.

    Args:
        table: the blocks.
        device: where the index tensors live.
    """

    def __init__(self, table: BlockTable, device: torch.device | str = "cpu") -> None:
        self.table = table
        self.device = torch.device(device)
        self._plans: dict[tuple[int, int], ReachPlan] = {}

    def plan(self, look_backward: int, look_ahead: int) -> ReachPlan:
        """The plan of one reach, made at its first use."""
        furthest = max(len(self.table.lengths) - 1, 0)  # a longer reach sees nothing more
        reach = (min(look_backward, furthest), min(look_ahead, furthest))
        if reach not in self._plans:
            self._plans[reach] = self._make_plan(*reach)
        return self._plans[reach]

    def _make_plan(self, look_backward: int, look_ahead: int) -> ReachPlan:
        table, size = self.table, self.table.block_size
        seen = table.neighbours(look_backward, look_ahead)
        counts = np.where(seen == NO_BLOCK, 0, table.lengths[seen])  # [G, blocks seen]
        kinds, kind_of = np.unique(
            np.column_stack((table.lengths[: table.num_own], counts.sum(1))), axis=0, return_inverse=True
        )
        kind_of = kind_of.reshape(-1)  # numpy 2.0 returned a column
        groups: list[Group] = []
        whole = (size, size * seen.shape[1])
        few = len(kinds) - (whole in map(tuple, kinds)) <= MAX_KINDS
        left = np.ones(table.num_blocks, bool)
        for kind in range(len(kinds) - 1, -1, -1):  # the largest first: whole blocks
            ids = np.flatnonzero(kind_of == kind)
            if few or tuple(kinds[kind]) == whole:
                groups.append(self._group(ids, seen[ids], counts[ids]))
                left[ids] = False
        ends = self._ends(np.flatnonzero(left), seen[left], counts[left]) if left.any() else None
        return ReachPlan(tuple(groups), ends)

    def _group(self, ids: np.ndarray, seen: np.ndarray, counts: np.ndarray) -> Group:
        queries = self.table.starts[ids, None] + np.arange(int(self.table.lengths[ids[0]]))
        keys = self._frames(seen)[np.arange(self.table.block_size) < counts[..., None]].reshape(len(ids), -1)
        first = int(queries[0, 0])
        consecutive = np.array_equal(queries.ravel(), np.arange(first, first + queries.size))
        in_place = consecutive and np.array_equal(queries, keys)
        return Group(self._tensor(queries), self._tensor(keys), first if in_place else None)

    def _ends(self, ids: np.ndarray, seen: np.ndarray, counts: np.ndarray) -> Ends:
        own = self._frames(ids[:, None])[:, 0]
        visible = np.arange(self.table.block_size) < counts[..., None]
        keys = np.where(visible, self._frames(seen), own[:, None, :])
        real = np.arange(self.table.block_size) < self.table.lengths[ids, None]
        rows = np.flatnonzero(real)
        return Ends(
            self._tensor(own),
            self._tensor(keys.reshape(len(ids), -1)),
            self._tensor(visible.reshape(len(ids), 1, 1, -1)),
            self._tensor(rows),
            self._tensor(own.ravel()[rows]),
        )

    def _frames(self, blocks: np.ndarray) -> np.ndarray:
        """[..., S]: packed frames of blocks, the last one repeated where a block is short."""
        offsets = np.minimum(np.arange(self.table.block_size), self.table.lengths[blocks][..., None] - 1)
        return self.table.starts[blocks][..., None] + offsets

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
