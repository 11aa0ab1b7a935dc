# SPDX-License-Identifier: Apache-2.0
"""Rotary positions stay exact at any position, and depend on distance alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from blockwave.velocity.rotary import rotary_table, rotate_in_place

FAR = 360_000  # an hour of frames
ULP = 2.0**-24  # half of the last place of a float32 at 1


def table(positions, width=64, dtype=torch.float32):
    return rotary_table(np.asarray(positions), width, 1e4, dtype, torch.device("cpu"))


@pytest.mark.parametrize("first", [0, 32_768, FAR])
def test_cos_and_sin_are_correctly_rounded_at_any_position(first):
    positions = range(first, first + 50)
    cos, sin = table(positions)
    assert cos.shape == sin.shape == (50, 1, 32)
    for i, position in enumerate(positions):
        for pair in range(32):
            angle = position * 10_000 ** (-2 * pair / 64)
            # The angle itself is rounded in float64: 360,000 * 2^-53.
            assert cos[i, 0, pair].item() == pytest.approx(math.cos(angle), abs=ULP + 2e-10)
            assert sin[i, 0, pair].item() == pytest.approx(math.sin(angle), abs=ULP + 2e-10)


def test_angles_in_float32_would_not_do():
    frequencies = 10_000 ** (-torch.arange(0, 64, 2) / 64)
    coarse = (FAR * frequencies).cos()
    cos, _ = table([FAR])
    assert (coarse - cos[0, 0]).abs().max() > 1000 * ULP


def turned(x, positions):
    x = x.clone()
    cos, sin = table(positions, x.shape[-1], x.dtype)
    rotate_in_place(x, cos, sin)
    return x


def test_pairs_turn_like_complex_numbers():
    x = torch.randn(5, 3, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    out = turned(x, [0, 1, 7, 100, FAR])
    for i, position in enumerate([0, 1, 7, 100, FAR]):
        for pair in range(8):
            angle = position * 10_000 ** (-2 * pair / 16)
            number = torch.complex(x[i, :, pair], x[i, :, pair + 8]) * complex(math.cos(angle), math.sin(angle))
            torch.testing.assert_close(torch.complex(out[i, :, pair], out[i, :, pair + 8]), number, atol=1e-9, rtol=0)


def test_position_0_turns_nothing():
    x = torch.randn(1, 2, 16)
    assert torch.equal(turned(x, [0]), x)


@pytest.mark.parametrize("start", [1, 32_768, FAR])
def test_scores_depend_on_distance_alone(start):
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(48, 2, 64, generator=generator) for _ in range(2))

    def scores(first):
        positions = range(first, first + 48)
        return torch.einsum("fhd,ghd->hfg", turned(q, positions), turned(k, positions))

    assert (scores(start) - scores(0)).abs().max() < 1e-6 * scores(0).abs().max()


def test_only_the_given_heads_are_written():
    x = torch.randn(4, 3, 16)
    before = x.clone()
    cos, sin = table(range(1, 5), 16)
    rotate_in_place(x[:, :1], cos, sin)
    assert torch.equal(x[:, 1:], before[:, 1:])
    assert not torch.equal(x[:, :1], before[:, :1])
