# SPDX-License-Identifier: Apache-2.0
"""When frames leave a stream, and what leaves."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Emissions:
    """When frames leave.

    Attributes:
        first_blocks, chunk_blocks: blocks of the first emission and of each later one.
        look_ahead: blocks beyond an emission that are solved with it and again later; None for the exact result.
        window: for the exact result, blocks under way at once; None for no limit.
        is_live: somebody waits for the first frames, not for all of them.
    """

    first_blocks: int
    chunk_blocks: int
    look_ahead: int | None
    window: int | None = None
    is_live: bool = True

    def end(self, index: int) -> int:
        """The block after emission ``index``."""
        return self.first_blocks + index * self.chunk_blocks


@dataclass(frozen=True, eq=False)
class Emission:
    """Frames that leave together.

    Attributes:
        mel: [n, M], final.
        beyond: [m, M], the look-ahead frames that were solved with them and will be solved again; m = 0 for the exact
            result and at the end.
    """

    mel: Tensor
    beyond: Tensor
