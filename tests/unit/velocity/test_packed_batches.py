# SPDX-License-Identifier: Apache-2.0
"""Requests in one batch do not know of each other, and every block may have a time of its own."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch

from blockwave.mel.schedule import time_points
from blockwave.mel.solver import KUTTA_38, evaluation_times, integrate
from blockwave.testing import EXACT, random_dit, random_request, relative_error, request_condition, sized_config

ROUNDING = 2e-6  # of the maximum, of one evaluation: sums are taken in another order
CONFIG = sized_config("tiny")
REQUESTS = [(3, 5, 0.0), (50, 57, 0.5), (119, 400, 3.0)]  # codes, frames of the reference, guidance


@pytest.fixture(scope="module", autouse=True)
def without_gradient():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def dit():
    return random_dit(CONFIG)


@pytest.fixture(scope="module")
def inputs():
    return [random_request(CONFIG.dit, n, frames, seed=i) for i, (n, frames, _) in enumerate(REQUESTS)]


@pytest.fixture(scope="module")
def conditions(dit, inputs):
    return [request_condition(dit, r, guidance) for r, (_, _, guidance) in zip(inputs, REQUESTS, strict=True)]


def solve(dit, conditions, xs, num_points=10):
    points = time_points(num_points)
    grid, batch = dit.time_grid(evaluation_times(KUTTA_38, points)), dit.pack(conditions)
    out = integrate(lambda x, t: dit(x, batch, grid, grid.row(t)), torch.cat(xs), points)
    return out.split([len(x) for x in xs])


def evaluate(dit, conditions, x, rows, times=(0.1, 0.45, 0.8)):
    return dit(x, dit.pack(conditions), dit.time_grid(times), rows)


@pytest.fixture(scope="module")
def alone(dit, inputs, conditions):
    return [solve(dit, [c], [r["x"]])[0] for c, r in zip(conditions, inputs, strict=True)]


@pytest.mark.parametrize("order", [*permutations(range(3)), (0, 1), (2, 1), (1, 1), (2, 2, 0, 2)], ids=str)
def test_any_packing_equals_lone_runs(dit, inputs, conditions, alone, order):
    outs = solve(dit, [conditions[i] for i in order], [inputs[i]["x"] for i in order])
    for i, out in zip(order, outs, strict=True):
        assert relative_error(out, alone[i]) <= EXACT


def test_a_request_hears_nothing_of_another(dit, inputs, conditions):
    """Beyond rounding there is nothing: another request full of NaN leaves the first one as it is."""
    xs = [inputs[1]["x"], inputs[2]["x"]]
    clean = evaluate(dit, conditions[1:], torch.cat(xs), 1)
    dirty = evaluate(dit, conditions[1:], torch.cat([xs[0], torch.full_like(xs[1], torch.nan)]), 1)
    assert torch.equal(dirty[:100], clean[:100])
    assert dirty[100:].isnan().all()


@pytest.mark.parametrize("which", [[0], [1], [0, 1, 2]], ids=str)
def test_rows_for_every_frame_equal_one_row_for_all(dit, inputs, conditions, which):
    batch = [conditions[i] for i in which]
    x = torch.cat([inputs[i]["x"] for i in which])
    branch_frames = dit.pack(batch).layout.table.num_frames
    for row in range(3):
        rows = torch.full((branch_frames,), row)
        assert relative_error(evaluate(dit, batch, x, rows), evaluate(dit, batch, x, row)) <= ROUNDING


def rows_of(dit, conditions, row_of):
    """int64 [F'] from a function of (request, block)."""
    table = dit.pack(conditions).layout.table
    owners = [*range(len(conditions)), *(i for i, c in enumerate(conditions) if c.null_row is not None)]
    blocks = [row_of(owners[s], int(p)) for s, p in zip(table.sequence, table.position, strict=True)]
    return torch.tensor(blocks)[torch.from_numpy(table.frame_block)]


def test_requests_at_different_times_equal_evaluations_of_their_own(dit, inputs, conditions):
    x = torch.cat([r["x"] for r in inputs])
    out = evaluate(dit, conditions, x, rows_of(dit, conditions, lambda request, _: [2, 0, 1][request]))
    for own, c, r, row in zip(out.split([6, 100, 238]), conditions, inputs, [2, 0, 1], strict=True):
        assert relative_error(own, evaluate(dit, [c], r["x"], row)) <= ROUNDING


def test_blocks_at_different_times_equal_evaluations_of_their_own(dit, inputs, conditions):
    """Layers 0 and 4 look back, layer 2 ahead: block b reads b - 2 .. b + 1, and what it reads is at one time."""
    x, c = inputs[2]["x"], [conditions[2]]
    early, late = (evaluate(dit, c, x, row).split(24) for row in (0, 2))
    mixed = evaluate(dit, c, x, rows_of(dit, c, lambda _, block: 0 if block < 5 else 2)).split(24)
    for block in range(10):
        if block <= 3:
            assert relative_error(mixed[block], early[block]) <= ROUNDING
        if block >= 7:
            assert relative_error(mixed[block], late[block]) <= ROUNDING
    for block in (4, 5, 6):  # these read over the border
        assert relative_error(mixed[block], (early if block < 5 else late)[block]) > 100 * ROUNDING


def test_without_neighbours_every_block_is_on_its_own():
    config = sized_config("tiny", look_ahead_layers=[], look_backward_layers=[])
    dit, request = random_dit(config), random_request(config.dit, 59, 30)
    c = [request_condition(dit, request, 0.5)]
    each = [evaluate(dit, c, request["x"], row).split(24) for row in range(3)]
    mixed = evaluate(dit, c, request["x"], rows_of(dit, c, lambda _, block: block * 2 % 3)).split(24)
    assert len(mixed) == 5
    for block, out in enumerate(mixed):
        assert relative_error(out, each[block * 2 % 3][block]) <= ROUNDING
        assert relative_error(out, each[(block * 2 + 1) % 3][block]) > 100 * ROUNDING


def test_one_evaluation_reads_two_blocks_back_and_one_ahead(dit, inputs, conditions):
    x = inputs[2]["x"]
    before = evaluate(dit, conditions[2:], x, 1).split(24)
    for block in (0, 5, 9):
        poked = x.clone()
        poked[block * 24 + 3] += 1
        changed = evaluate(dit, conditions[2:], poked, 1).split(24)
        differ = {b for b in range(10) if not torch.equal(before[b], changed[b])}
        assert differ == {b for b in range(block - 1, block + 3) if 0 <= b < 10}
