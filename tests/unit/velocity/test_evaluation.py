# SPDX-License-Identifier: Apache-2.0
"""What an evaluation must not do: read values back, copy to the device, allocate quadratically, touch its inputs."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from blockwave.mel.schedule import time_points
from blockwave.mel.solver import KUTTA_38, evaluation_times, integrate
from blockwave.testing import random_dit, random_request, request_condition, sized_config

CONFIG = sized_config("tiny")
# Operators that wait for the device, or whose result has a shape that only the device knows.
WAITING = ("_local_scalar_dense", "item", "is_nonzero", "nonzero", "masked_select", "unique", "equal", "_to_copy")


class Record(TorchDispatchMode):
    """Names of all operators, and the largest result."""

    def __init__(self):
        super().__init__()
        self.names, self.largest = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == "index" and any(index is not None and index.dtype == torch.bool for index in args[1]):
            name = "nonzero"  # a mask as an index has to count its ones
        self.names.append(name)
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
        return out


@pytest.fixture(scope="module", autouse=True)
def without_gradient():
    with torch.no_grad():  # in inference mode compound operators would hide what they are made of
        yield


@pytest.fixture(scope="module")
def dit():
    return random_dit(CONFIG)


def prepared(dit, guidances, num_codes=40, device="cpu"):
    requests = [random_request(CONFIG.dit, num_codes + i, 20 + i, seed=i) for i in range(len(guidances))]
    requests = [{name: value.to(device) for name, value in r.items()} for r in requests]
    conditions = [request_condition(dit, r, g) for r, g in zip(requests, guidances, strict=True)]
    return torch.cat([r["x"] for r in requests]), dit.pack(conditions)


def test_the_instrument_sees_a_value_read_back():
    x = torch.ones(3)
    for read in (lambda: float(x[0]), lambda: bool(x.any()), lambda: x.nonzero(), lambda: x[x > 0], lambda: x.double()):
        with Record() as record:
            read()
        assert set(WAITING) & set(record.names)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.ones(1, device="meta").item()


@pytest.mark.parametrize("guidances", [(0.0,), (0.5,), (0.0, 0.5, 3.0)], ids=str)
def test_an_evaluation_waits_for_nothing(dit, guidances):
    x, batch = prepared(dit, guidances)
    grid = dit.time_grid([0.1, 0.4])
    per_frame = torch.zeros(batch.layout.table.num_frames, dtype=torch.int64)
    for rows in (1, per_frame):
        with Record() as record:
            dit(x, batch, grid, rows)
        assert len(record.names) > 50
        assert sorted(set(WAITING) & set(record.names)) == []


@pytest.mark.parametrize("guidances", [(0.0,), (0.5,), (0.0, 0.5, 3.0)], ids=str)
def test_a_solve_runs_without_any_values(guidances):
    """On tensors that have no values, every attempt to read one is an error."""
    dit = random_dit(CONFIG).to("meta")
    x, batch = prepared(dit, guidances, device="meta")
    points = time_points(3)
    grid = dit.time_grid(evaluation_times(KUTTA_38, points))
    with Record() as record:
        out = integrate(lambda x, t: dit(x, batch, grid, grid.row(t)), x, points)
    assert (out.shape, out.device.type) == (x.shape, "meta")
    first = len(record.names)
    with Record() as record:  # index tensors went to the device at the first evaluation; now nothing does
        dit(x, batch, grid, 0)
    assert first > 8 * 50
    assert sorted(set(WAITING) & set(record.names)) == []


def test_20_000_frames_allocate_nothing_quadratic(dit):
    x, batch = prepared(dit, (0.5,), num_codes=10_000)
    grid = dit.time_grid([0.3])
    with Record() as record:
        dit(x, batch, grid, 0)
    branch_frames, inner = 2 * 20_000, CONFIG.dit.num_heads * CONFIG.dit.head_dim
    assert record.largest == branch_frames * 3 * inner  # q, k and v
    assert record.largest < 20_000**2 / 40


def test_inputs_are_not_written(dit):
    x, batch = prepared(dit, (0.0, 0.5))
    grid = dit.time_grid([0.3])
    kept = [x, batch.constants, batch.cos, batch.sin, grid.layers, grid.final]
    before = [tensor.clone() for tensor in kept]
    first = dit(x, batch, grid, 0)
    assert torch.equal(dit(x, batch, grid, 0), first)
    assert all(torch.equal(a, b) for a, b in zip(kept, before, strict=True))
