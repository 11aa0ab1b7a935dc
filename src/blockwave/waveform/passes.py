# SPDX-License-Identifier: Apache-2.0
"""How the vocoder's layers are run. What they are and how they hang together stands once, in the modules."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn


class Pass(Protocol):
    """One way through the network; every signal is [B, C, L]."""

    def __call__(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Output of a convolution, a transposed convolution or an activation."""
        ...

    def join(self, a: Tensor, b: Tensor) -> Tensor:
        """Sum of two signals. The memory of ``a`` may be used for it, and that of ``b`` where ``b`` is a branch."""
        ...


class WholePass:
    """Both ends of every signal are ends of the sound."""

    def __call__(self, layer: nn.Module, x: Tensor) -> Tensor:
        return layer(x)

    def join(self, a: Tensor, b: Tensor) -> Tensor:
        return a.add_(b)  # in place: fresh memory of this size costs as much as the sum


WHOLE = WholePass()
