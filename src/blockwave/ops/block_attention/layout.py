# SPDX-License-Identifier: Apache-2.0
"""Index tensors of a block table on one device, made once for a batch and shared by all layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...blocks import NO_BLOCK, BlockTable


@dataclass(frozen=True)
class Whole:
    """Blocks that are full and whose visible neighbours all exist and are full: nothing to mask.

    Attributes:
        queries: int64 [m, S], packed frames.
        keys: int64 [m, (back + 1 + ahead) S], packed frames.
    """

    queries: Tensor
    keys: Tensor


@dataclass(frozen=True)
class Edge:
    """Blocks at an end of their sequence. Places without a frame repeat a frame of the block itself.

    Attributes:
        queries: int64 [e, S], packed frames.
        keys: int64 [e, (back + 1 + ahead) S], packed frames.
        visible: bool [e, 1, 1, (back + 1 + ahead) S], False where a key has no frame; never all False.
        rows: int64 [r], flat places of ``queries`` that hold real frames.
    """

    queries: Tensor
    keys: Tensor
    visible: Tensor
    rows: Tensor


@dataclass(frozen=True)
class ReachPlan:
    """How one reach (back, ahead) is computed.

    Attributes:
        whole, edge: the two groups; either may be None.
        order: int64 [F], where to find every packed frame in the concatenation of both groups' results, or None
            where that already is packed order.
    """

    whole: Whole | None
    edge: Edge | None
    order: Tensor | None


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
        furthest = int(self.table.position.max(initial=0))  # a longer reach sees nothing more
        reach = (min(look_backward, furthest), min(look_ahead, furthest))
        if reach not in self._plans:
            self._plans[reach] = self._make_plan(*reach)
        return self._plans[reach]

    def _make_plan(self, look_backward: int, look_ahead: int) -> ReachPlan:
        table, size = self.table, self.table.block_size
        seen = table.neighbours(look_backward, look_ahead)
        full = table.lengths == size
        is_whole = ((seen != NO_BLOCK) & full[seen]).all(1)
        whole_ids, edge_ids = np.flatnonzero(is_whole), np.flatnonzero(~is_whole)

        own = table.starts[:, None] + np.minimum(np.arange(size), table.lengths[:, None] - 1)  # [G, S]
        whole = edge = None
        parts = []
        if len(whole_ids):
            keys = own[seen[whole_ids]].reshape(len(whole_ids), -1)
            whole = Whole(self._tensor(own[whole_ids]), self._tensor(keys))
            parts.append(own[whole_ids].ravel())
        if len(edge_ids):
            blocks = seen[edge_ids]
            there = blocks != NO_BLOCK
            counts = np.where(there, table.lengths[blocks], 0)  # [e, reach]
            visible = np.arange(size) < counts[..., None]
            keys = np.where(visible, own[blocks], own[edge_ids][:, None, :])
            real = np.arange(size) < table.lengths[edge_ids, None]
            edge = Edge(
                self._tensor(own[edge_ids]),
                self._tensor(keys.reshape(len(edge_ids), -1)),
                self._tensor(visible.reshape(len(edge_ids), 1, 1, -1)),
                self._tensor(np.flatnonzero(real)),
            )
            parts.append(own[edge_ids][real])
        concatenated = np.concatenate(parts)
        if np.array_equal(concatenated, np.arange(table.num_frames)):
            return ReachPlan(whole, edge, None)
        return ReachPlan(whole, edge, self._tensor(np.argsort(concatenated)))

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
