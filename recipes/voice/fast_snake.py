# SPDX-License-Identifier: Apache-2.0
"""Replaces the anti-aliased activations of the engine's vocoder by a fused C++ version, for training on a CPU.

``install(vocoder)`` compiles fast_snake.cpp once (needs g++) and swaps the forward of every activation; parameters,
names and results stay. Without g++ it returns False and nothing changes. ``python fast_snake.py`` checks values and
gradients.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blockwave.waveform.filters import ANTI_ALIAS_TAPS
from blockwave.waveform.layers import Snake

SOURCE = Path(__file__).with_name("fast_snake.cpp")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC")


@cache
def library() -> ctypes.CDLL | None:
    if not shutil.which("g++"):
        return None
    target = Path(tempfile.mkdtemp()) / "fast_snake.so"
    subprocess.run(["g++", *FLAGS, str(SOURCE), "-o", str(target)], check=True)
    # libgomp reads OMP_NUM_THREADS when it is loaded, before torch.set_num_threads can reach it.
    os.environ.setdefault("OMP_NUM_THREADS", str(torch.get_num_threads()))
    return ctypes.CDLL(str(target))


def pointer(x: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.data_ptr())


class FusedSnake(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, log_a: Tensor, log_b: Tensor, taps: Tensor) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        library().snake_forward(*map(pointer, (x, log_a, log_b, taps, out)), *x.shape)
        ctx.save_for_backward(x, log_a, log_b, taps)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, log_a, log_b, taps = ctx.saved_tensors
        grad = grad.contiguous()
        dx, da, db = torch.empty_like(x), x.new_empty(x.shape[:2]), x.new_empty(x.shape[:2])
        library().snake_backward(*map(pointer, (x, log_a, log_b, taps, grad, dx, da, db)), *x.shape)
        return dx, da.sum(0), db.sum(0), None


def install(vocoder: nn.Module) -> bool:
    if library() is None:
        return False
    taps = torch.tensor(ANTI_ALIAS_TAPS, dtype=torch.float32)
    for module in vocoder.modules():
        if isinstance(module, Snake):
            module.forward = lambda x, snake=module: FusedSnake.apply(x, snake.log_alpha, snake.log_beta, taps)
    return True


def check() -> None:
    torch.manual_seed(0)
    for n in (1, 2, 5, 37, 400):
        snake = Snake(6, "reference")
        torch.nn.init.normal_(snake.log_alpha, std=0.5)
        torch.nn.init.normal_(snake.log_beta, std=0.5)
        x = torch.randn(3, 6, n, requires_grad=True)
        weight = torch.randn(3, 6, n)

        def values(snake: Snake = snake, x: Tensor = x, weight: Tensor = weight) -> tuple[Tensor, ...]:
            out = snake(x)
            return out, *torch.autograd.grad((out * weight).sum(), (x, snake.log_alpha, snake.log_beta))

        slow = values()
        assert install(snake), "no g++"
        pairs = zip(slow, values(), strict=True)
        errors = [(a - b).abs().max().item() / max(1.0, a.abs().max().item()) for a, b in pairs]
        print(n, " ".join(f"{e:.1e}" for e in errors))
        assert max(errors) < 1e-5


if __name__ == "__main__":
    check()
