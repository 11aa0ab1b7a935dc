# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on time alone, for one time or a whole grid."""

from __future__ import annotations

import math

import pytest
import torch

from blockwave.mel.schedule import time_points
from blockwave.mel.solver import KUTTA_38, evaluation_times
from blockwave.testing import random_dit, relative_error, sized_config
from blockwave.velocity.modulation import modulated_norm, sinusoid

TIMES = evaluation_times(KUTTA_38, time_points(10))
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def dit():
    return random_dit(sized_config("tiny"))


def test_the_sinusoid_is_the_published_formula_to_the_bit():
    """SinusPositionEmbedding: sin, then cos, of 1000 t exp(-i ln(1e4) / 127), formed in float32 in this order."""
    frequencies = torch.exp(torch.arange(128).float() * -(math.log(10_000) / 127))
    angles = 1000 * torch.tensor(TIMES).unsqueeze(1) * frequencies.unsqueeze(0)
    expected = torch.cat((angles.sin(), angles.cos()), -1)
    assert torch.equal(sinusoid(TIMES, torch.float32, CPU), expected)


def test_a_row_of_the_grid_is_the_calculation_of_a_single_time(dit):
    grid = dit.time_grid(TIMES)
    assert grid.layers.shape == (5, 28, 6, 72)
    assert grid.final.shape == (28, 2, 72)
    for time in TIMES:
        single, row = dit.time_grid([time]), grid.row(time)
        assert relative_error(grid.layers[:, row], single.layers[:, 0]) < 1e-6
        assert relative_error(grid.final[row], single.final[0]) < 1e-6


def test_rows_have_the_order_of_the_checkpoint(dit):
    """shift, scale, gate of the attention, then of the MLP; the final norm has scale first."""
    t = torch.tensor(0.3)
    embedded = torch.nn.functional.silu(dit.time([0.3]))[0]
    m = dit.time_grid([0.1, t.item()]).layer(3, 1)
    parts = dit.layers[3].modulation(embedded).chunk(6)
    got = [m.shift_attention, m.scale_attention, m.gate_attention, m.shift_mlp, m.scale_mlp, m.gate_mlp]
    for i, (a, b) in enumerate(zip(got, parts, strict=True)):
        torch.testing.assert_close(a, b + 1 if i in (1, 4) else b, rtol=0, atol=2e-6)
    scale, shift = dit.time_grid([0.3]).scale_and_shift(0)
    expected = dit.final_modulation(embedded).chunk(2)
    torch.testing.assert_close(scale, 1 + expected[0], rtol=0, atol=2e-6)
    torch.testing.assert_close(shift, expected[1], rtol=0, atol=2e-6)


def test_rows_for_frames_are_the_rows_of_the_grid(dit):
    grid = dit.time_grid(TIMES)
    rows = torch.tensor([3, 3, 27, 0])
    m = grid.layer(2, rows)
    assert m.gate_mlp.shape == (4, 72)
    for frame, row in enumerate(rows.tolist()):
        assert torch.equal(m.gate_mlp[frame], grid.layer(2, row).gate_mlp)
        assert torch.equal(grid.scale_and_shift(rows)[0][frame], grid.scale_and_shift(row)[0])


def test_a_time_outside_the_grid_is_no_row(dit):
    with pytest.raises(ValueError, match="not in tuple"):
        dit.time_grid(TIMES).row(0.123)


@pytest.mark.parametrize("shape", [(72,), (9, 72)])
def test_the_norm_is_that_of_the_formula(shape):
    generator = torch.Generator().manual_seed(0)
    x, scale, shift = (torch.randn(s, generator=generator) for s in ((9, 72), shape, shape))
    d = x.double()
    normed = (d - d.mean(-1, keepdim=True)) / (d.var(-1, correction=0, keepdim=True) + 1e-6).sqrt()
    assert relative_error(modulated_norm(x, scale, shift), normed * scale.double() + shift.double()) < 5e-7
