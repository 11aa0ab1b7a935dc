# SPDX-License-Identifier: Apache-2.0
"""The DiT and its solve against transformers on one random checkpoint, and proof that the comparison can fail."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache

import pytest
import torch

from blockwave import Token2Wav
from blockwave.engine.build import build
from blockwave.mel.schedule import time_points
from blockwave.mel.solver import KUTTA_38, evaluation_times, integrate
from blockwave.testing import EXACT, random_request, relative_error, request_condition, sized_config
from blockwave.velocity import DiT
from blockwave.weights.load import load_config, load_into
from blockwave.weights.make import make_checkpoint
from tests.reference import load_reference

CONFIG = sized_config("tiny").dit
LENGTHS = (1, 2, 11, 12, 13, 119)  # codes; a block holds 12


@pytest.fixture(scope="module", autouse=True)
def without_gradient():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("dit") / "checkpoint", "tiny")


@pytest.fixture(scope="module")
def dit(folder):
    return Token2Wav.from_pretrained(folder).engine.dit


@pytest.fixture(scope="module")
def theirs(folder):
    return load_reference(folder).code2wav_dit_model


@cache
def requests(num_codes, batch=1, frames=57):
    return [random_request(CONFIG, num_codes, frames, seed=i) for i in range(batch)]


def stacked(requests):
    return {name: torch.stack([r[name] for r in requests]) for name in requests[0]}


def evaluate_theirs(model, requests, time, guided=True):
    """Both branches, [2 B, T, M]; without guidance [B, T, M]."""
    r = stacked(requests)
    xvector = r["xvector"][:, None].expand(-1, r["x"].shape[1], -1)
    return model(r["x"], r["reference_mel"], xvector, r["codes"], torch.tensor(time), apply_cfg=guided)


def evaluate(dit, requests, time, guided=True):
    batch = dit.pack([request_condition(dit, r, 0.5 if guided else 0.0) for r in requests])
    out = dit.branches(torch.cat([r["x"] for r in requests]), batch, dit.time_grid([time]), 0)
    branches = out[torch.cat([batch.conditional, batch.unconditional])]
    return branches.unflatten(0, (-1, len(requests[0]["x"])))


def solve_theirs(model, requests, num_points, guidance, seed=5):
    r = stacked(requests)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mel = model.sample(r["xvector"], r["reference_mel"], r["codes"], num_points, guidance)
    return mel.transpose(1, 2)


def solve(dit, requests, num_points, guidance, seed=5):
    """From the noise that transformers draws: one stack from the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        noise = torch.randn(len(requests), *requests[0]["x"].shape)
    points = time_points(num_points)
    grid = dit.time_grid(evaluation_times(KUTTA_38, points))
    batch = dit.pack([request_condition(dit, r, guidance) for r in requests])
    return integrate(lambda x, t: dit(x, batch, grid, grid.row(t)), noise.flatten(0, 1), points).view_as(noise)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("num_codes", LENGTHS)
@pytest.mark.parametrize("time", [0.0, 0.25, 1.0])
def test_one_evaluation_with_both_branches(dit, theirs, time, num_codes, batch):
    r = requests(num_codes, batch)
    got, expected = evaluate(dit, r, time), evaluate_theirs(theirs, r, time)
    for branch, reference in zip(got.chunk(2), expected.chunk(2), strict=True):
        assert relative_error(branch, reference) <= EXACT


@pytest.mark.parametrize("num_codes", LENGTHS)
def test_one_evaluation_without_guidance(dit, theirs, num_codes):
    r = requests(num_codes)
    assert relative_error(evaluate(dit, r, 0.6, False), evaluate_theirs(theirs, r, 0.6, False)) <= EXACT


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("num_codes", LENGTHS)
def test_the_released_solve(dit, theirs, num_codes, batch):
    r = requests(num_codes, batch)
    assert relative_error(solve(dit, r, 10, 0.5), solve_theirs(theirs, r, 10, 0.5)) <= EXACT


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("guidance", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("num_points", [2, 3, 10])
def test_other_points_and_guidance(dit, theirs, num_points, guidance, batch):
    r = requests(31, batch)
    got, expected = solve(dit, r, num_points, guidance), solve_theirs(theirs, r, num_points, guidance)
    assert relative_error(got, expected) <= EXACT


@pytest.mark.parametrize("frames", [5, 6, 57, 400])
def test_the_speaker_encoder(dit, theirs, frames):
    mel = requests(1, 1, frames)[0]["reference_mel"][None]
    for signal in (mel, torch.zeros_like(mel)):
        assert relative_error(dit.speaker(signal), theirs.input_embed.spk_encoder(signal).view(1, -1)) <= EXACT


# Mutations: each is a mistake that has been made; each must be seen.


def reach(layer, back, ahead):
    def mutate(dit):
        dit.layers[layer].look_backward, dit.layers[layer].look_ahead = back, ahead

    return mutate


HALVES = torch.cat([torch.arange(0, CONFIG.head_dim, 2), torch.arange(1, CONFIG.head_dim, 2)])


def reorder(dit, heads, order):
    """Reorders the rows of some heads of every query and key projection."""
    for layer in dit.layers:
        for parameter in (layer.qkv.weight, layer.qkv.bias):
            rows = parameter.unflatten(0, (3, CONFIG.num_heads, CONFIG.head_dim))[:2, heads]
            rows.copy_(rows[:, :, order].clone())


def rope_on_all_heads(dit):
    """The same checkpoint read as one of a family that turns every head."""
    reorder(dit, slice(1, None), HALVES)
    for layer in dit.layers:
        layer.rope_heads = CONFIG.num_heads


def rows_not_permuted(dit):
    """Half-split rotation of rows that are still interleaved pairs."""
    reorder(dit, slice(0, 1), HALVES.argsort())


class ZeroForSilence(torch.nn.Module):
    def __init__(self, speaker):
        super().__init__()
        self.speaker = speaker

    def forward(self, mel):
        return self.speaker(mel) * mel.any()


def silence_encoded_as_zeros(dit):
    dit.speaker = ZeroForSilence(dit.speaker)


def unconditional_code_1(dit):
    dit.code_embedding.weight[0] = dit.code_embedding.weight[1]  # the requests hold no code 0


def final_scale_and_shift_swapped(dit):
    for parameter in (dit.final_modulation.weight, dit.final_modulation.bias):
        parameter.copy_(parameter.roll(CONFIG.hidden_size, 0))


def layer_scale_and_shift_swapped(dit):
    for parameter in (dit.layers[1].modulation.weight, dit.layers[1].modulation.bias):
        parts = parameter.chunk(6)
        parameter.copy_(torch.cat([parts[i] for i in (1, 0, 2, 3, 4, 5)]))


MUTATIONS = {
    "back layer sees two back": reach(0, 2, 0),
    "back layer sees none": reach(4, 0, 0),
    "back layer looks ahead": reach(4, 0, 1),
    "ahead layer sees two ahead": reach(2, 0, 2),
    "ahead layer sees none": reach(2, 0, 0),
    "own-block layer looks back": reach(3, 1, 0),
    "RoPE on all heads": rope_on_all_heads,
    "half-split RoPE": rows_not_permuted,
    "ECAPA of zeros is zeros": silence_encoded_as_zeros,
    "unconditional code not 0": unconditional_code_1,
    "final scale and shift swapped": final_scale_and_shift_swapped,
    "a layer's scale and shift swapped": layer_scale_and_shift_swapped,
}


def test_reading_every_head_as_turned_is_what_the_configuration_does(dit, folder):
    """The mutation above is what ``rope_heads`` does to the same file."""
    config = load_config(folder)
    config = dataclasses.replace(config, dit=dataclasses.replace(config.dit, rope_heads="all"))
    other, vocoder = build(config, torch.device("cpu"), torch.float32)
    load_into(other, vocoder, folder, config)
    mutated = copy.deepcopy(dit)
    rope_on_all_heads(mutated)
    r = requests(13)
    assert torch.equal(evaluate(mutated, r, 0.5), evaluate(other, r, 0.5))


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_exceeds_ten_times_the_bound(dit, theirs, mutation):
    r = requests(40)
    mutated: DiT = copy.deepcopy(dit)
    MUTATIONS[mutation](mutated)
    assert relative_error(solve(mutated, r, 3, 0.5), solve_theirs(theirs, r, 3, 0.5)) > 10 * EXACT


def test_without_a_mutation_the_same_comparison_holds(dit, theirs):
    r = requests(40)
    assert relative_error(solve(copy.deepcopy(dit), r, 3, 0.5), solve_theirs(theirs, r, 3, 0.5)) <= EXACT
