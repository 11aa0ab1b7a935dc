# SPDX-License-Identifier: Apache-2.0
"""The noise of a seed is frozen, belongs to the request, and touches nothing global."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from blockwave.errors import OptionError
from blockwave.mel.noise import MAX_SEED, check_seed, fresh_seed, seeded_noise

# Changing any of these changes the sound of every seed: see Numerics in CHANGELOG.md.
FROZEN = {
    0: [-1.1258398, -1.1523602, 0.8057536, -0.0933482, -0.2600442, -0.9170499, 1.0889891],
    1: [-1.5255959, -0.7502318, -0.9822771, -0.5064866, -0.8671194, 0.4251565, -0.6847956],
    MAX_SEED: [-2.6642976, -1.0910486, 0.3813742, 0.0296023, -0.0451723, -0.3700784, 0.1984492],
}
PLACES = [(0, 0), (0, 1), (0, 79), (1, 0), (23, 79), (24, 0), (237, 79)]


@pytest.mark.parametrize("seed", FROZEN)
def test_the_noise_of_a_seed_is_frozen(seed):
    noise = seeded_noise(seed, 238, 80)
    assert (noise.shape, noise.dtype, noise.device.type) == ((238, 80), torch.float32, "cpu")
    # Vector units differ in the last place of logarithm and cosine.
    assert [noise[place].item() for place in PLACES] == pytest.approx(FROZEN[seed], abs=2e-6)


@pytest.mark.parametrize("block", [1, 24, 7])
def test_drawn_block_by_block_it_is_the_same(block):
    generator = torch.Generator("cpu").manual_seed(0)
    parts = [torch.randn(min(block, 238 - start), 80, generator=generator) for start in range(0, 238, block)]
    assert torch.equal(torch.cat(parts), seeded_noise(0, 238, 80))


def test_a_longer_request_begins_with_the_noise_of_a_shorter_one():
    assert torch.equal(seeded_noise(3, 500, 80)[:238], seeded_noise(3, 238, 80))


def test_seeds_differ():
    seeds = [0, 1, 2, 2**16, 2**31, 2**31 + 1, MAX_SEED - 1, MAX_SEED]
    firsts = {tuple(seeded_noise(seed, 1, 80)[0, :4].tolist()) for seed in seeds}
    assert len(firsts) == len(seeds)


def test_the_range_of_seeds_is_what_the_generator_tells_apart():
    """A wider range would hold pairs of seeds with the same sound."""

    def draw(seed):
        return torch.randn(80, generator=torch.Generator("cpu").manual_seed(seed))

    assert torch.equal(draw(MAX_SEED + 1), draw(0))


def test_it_is_standard_normal():
    noise = seeded_noise(11, 5000, 80).double()
    assert abs(noise.mean()) < 4 / 400_000**0.5
    assert abs(noise.var() - 1) < 4 * (2 / 400_000) ** 0.5


def test_global_generators_are_untouched():
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    seeded_noise(fresh_seed(), 10, 80)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert (np.random.get_state()[1] == before[2]).all()  # noqa: NPY002
    torch.manual_seed(1)
    one = seeded_noise(5, 4, 80)
    torch.manual_seed(2)
    assert torch.equal(seeded_noise(5, 4, 80), one)


def test_fresh_seeds_are_legal_and_differ():
    seeds = {fresh_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert all(check_seed(seed) == seed for seed in seeds)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, 1.0, True, "1", None])
def test_a_seed_outside_its_range_is_refused(seed):
    with pytest.raises(OptionError, match=rf"seed: got {seed!r}, expected an integer from 0 to {MAX_SEED}"):
        seeded_noise(seed, 1, 80)
