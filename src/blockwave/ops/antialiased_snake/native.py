# SPDX-License-Identifier: Apache-2.0
"""The anti-aliased Snake compiled for this processor by numba, where that is installed. Gives no gradient.

Its rows are shared out among threads of its own, as many as torch uses: numba's own parallel loops would bring a second
pool of threads that wait by spinning, or one that two threads may not use at once.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

NUM_TAPS = 12  # of the only filter that is compiled
# Values of a thread that are worth waking it for: some 20 us of work.
_MIN_VALUES = 1 << 13
# Not installed, or not with this numpy; a library of it that is missing; a processor that it does not know.
_BROKEN = (ImportError, AttributeError, SystemError, OSError, RuntimeError)


@cache
def why_not() -> str | None:
    """What keeps it from running here, in words; None where it runs. Loads, and if need be compiles, the loops."""
    try:
        _kernels()
    except _BROKEN as error:
        return f"numba does not run here ({type(error).__name__}: {error}); pip install --upgrade 'blockwave[native]'"
    return None


def takes(device: torch.device, dtype: torch.dtype, num_taps: int) -> bool:
    """Whether it is written for these."""
    return device.type == "cpu" and dtype != torch.float64 and num_taps == NUM_TAPS


@torch.no_grad()
def activate(x: Tensor, log_alpha: Tensor, log_beta: Tensor, taps: tuple[float, ...]) -> Tensor:
    """Same contract as :func:`blockwave.ops.antialiased_snake.antialiased_snake`, for what :func:`takes` allows.

    Sines are as exact as float32 arguments allow up to 2e5; beyond that they are still between -1 and 1.
    """
    batch, channels, length = x.shape
    rows = x.to(torch.float32).reshape(batch * channels, length).contiguous()
    out = torch.empty_like(rows)
    magnitude = 1.0 / (log_beta.to(torch.float32).exp() + 1e-9)
    tensors = rows, log_alpha.to(torch.float32).exp(), magnitude, torch.tensor(taps, dtype=torch.float32), out
    arrays = [tensor.contiguous().numpy(force=True) for tensor in tensors]
    shares = max(1, min(torch.get_num_threads(), len(rows), out.numel() // _MIN_VALUES))
    bounds = [len(rows) * i // shares for i in range(shares + 1)]
    run = _kernels().activate_rows
    others: list[Future[None]] = []
    try:
        others += (_pool().submit(run, *arrays, *bounds[i : i + 2]) for i in range(1, shares))
    except RuntimeError:  # the main thread has ended, and nobody may start threads any more
        run(*arrays, bounds[len(others) + 1], bounds[-1])
    run(*arrays, *bounds[:2])
    for other in others:
        other.result()
    return out.view(batch, channels, length).to(x.dtype)


@cache
def _kernels() -> ModuleType:
    from . import kernels

    return kernels


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "blockwave-native")


if hasattr(os, "register_at_fork"):  # threads do not outlive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
