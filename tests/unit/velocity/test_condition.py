# SPDX-License-Identifier: Apache-2.0
"""What a solve is conditioned on: the constant columns of the input, and which branches there are."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from blockwave.testing import random_dit, random_request, relative_error, request_condition, sized_config
from blockwave.velocity import MIN_GUIDANCE, Condition
from blockwave.velocity.guidance import guide

CONFIG = sized_config("tiny")


@pytest.fixture(scope="module", autouse=True)
def without_gradient():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def dit():
    return random_dit(CONFIG)


def condition(dit, guidance, num_codes=13, frames=20, seed=0):
    return request_condition(dit, random_request(CONFIG.dit, num_codes, frames, seed), guidance)


def whole_rows(dit, codes, xvector, mel):
    """The input projection of [0 | ECAPA | code | x-vector] in float64, every column at once."""
    encoded = dit.speaker(mel[None]).double().expand(len(codes), -1)
    columns = [torch.zeros(len(codes), CONFIG.dit.mel_dim), encoded, dit.code_embedding(codes)]
    row = torch.cat([*columns, xvector.expand(len(codes), -1)], 1).double()
    return row @ dit.input.weight.double().T + dit.input.bias.double()


def test_rows_are_the_constant_columns_of_the_projection(dit):
    r = random_request(CONFIG.dit, 13, 20)
    c = condition(dit, 0.5)
    assert relative_error(c.code_rows, whole_rows(dit, r["codes"], r["xvector"], r["reference_mel"])) < 2e-6
    null = torch.zeros(1, dtype=torch.int64), torch.zeros_like(r["xvector"]), torch.zeros_like(r["reference_mel"])
    assert relative_error(c.null_row, whole_rows(dit, *null)) < 2e-6


def test_the_unconditional_row_knows_nothing_of_the_request(dit):
    rows = [condition(dit, 0.5, n, 20, seed).null_row for n, seed in [(13, 0), (5, 1)]]
    assert torch.equal(*rows)


@pytest.mark.parametrize("guidance", [-1.0, 0.0, 9.9e-6])
def test_guidance_below_the_threshold_makes_one_branch(dit, guidance):
    batch = dit.pack([condition(dit, guidance)])
    assert batch.layout.table.num_frames == 26
    assert len(batch.guided) == len(batch.unconditional) == 0
    x = random_request(CONFIG.dit, 13, 20)["x"]
    grid = dit.time_grid([0.3])
    branches = dit.branches(x, batch, grid, 0)
    assert len(branches) == 26
    assert torch.equal(dit(x, batch, grid, 0), branches[batch.conditional])


@pytest.mark.parametrize("guidance", [MIN_GUIDANCE, 0.5, 3.0])
def test_guidance_makes_two_branches(dit, guidance):
    batch = dit.pack([condition(dit, guidance)])
    assert batch.layout.table.num_frames == 52
    x = random_request(CONFIG.dit, 13, 20)["x"]
    grid = dit.time_grid([0.3])
    branches = dit.branches(x, batch, grid, 0).double()
    c, u = branches[batch.conditional], branches[batch.unconditional]
    assert relative_error(c, u) > 0.1
    assert relative_error(dit(x, batch, grid, 0), c + (c - u) * guidance) < 1e-6


def test_only_guided_requests_have_a_second_branch(dit):
    batch = dit.pack([condition(dit, g, n) for g, n in [(0.0, 3), (0.5, 20), (0.0, 7), (3.0, 1)]])
    assert batch.num_frames == [6, 40, 14, 2]
    assert batch.layout.table.num_frames == 62 + 42
    assert batch.guided.tolist() == [*range(6, 46), 60, 61]
    assert batch.guidance.flatten().tolist() == [0.5] * 40 + [3.0] * 2
    assert sorted([*batch.conditional.tolist(), *batch.unconditional.tolist()]) == list(range(104))


def test_every_frame_gets_its_own_code_and_position(dit):
    conditions = [condition(dit, 0.5, 20, seed=1), condition(dit, 0.0, 13, seed=2), condition(dit, 0.5, 4, seed=3)]
    conditions[2] = dataclasses.replace(conditions[2], null_row=conditions[2].null_row + 1)
    batch = dit.pack(conditions)
    expected = torch.cat([c.code_rows.repeat_interleave(2, 0) for c in conditions])
    assert torch.equal(batch.constants[batch.constant_of[batch.conditional]], expected)
    null = batch.constants[batch.constant_of[batch.unconditional]]
    assert torch.equal(null[:40], conditions[0].null_row.expand(40, -1))
    assert torch.equal(null[40:], conditions[2].null_row.expand(8, -1))
    assert batch.x_of[batch.conditional].tolist() == list(range(74))
    assert batch.x_of[batch.unconditional].tolist() == [*range(40), *range(66, 74)]
    position = torch.tensor([*range(40), *range(26), *range(8)])
    angle = position.double()  # the first frequency is 1
    torch.testing.assert_close(batch.cos[batch.conditional, 0, 0], angle.cos().float())
    torch.testing.assert_close(batch.sin[batch.unconditional, 0, 0], angle[batch.guided].sin().float())


@pytest.mark.parametrize(("guidance", "null"), [(0.5, None), (0.0, torch.zeros(1, 4))])
def test_a_condition_that_contradicts_itself_is_refused(guidance, null):
    with pytest.raises(ValueError, match=f"got guidance {guidance} with null_row {null is not None}"):
        Condition(torch.zeros(3, 4), null, guidance)


def test_guide_is_the_published_formula():
    c, u = torch.tensor([[2.0], [5.0]]), torch.tensor([[1.0], [7.0]])
    assert guide(c, u, 0.5).tolist() == [[2.5], [4.0]]
    assert guide(c, u, torch.tensor([[0.0], [3.0]])).tolist() == [[2.0], [-1.0]]
