# SPDX-License-Identifier: Apache-2.0
"""The speaker encoder: references of any length, each on its own."""

from __future__ import annotations

import pytest
import torch

from blockwave.testing import random_dit, relative_error, sized_config

CONFIG = sized_config("tiny")


@pytest.fixture(scope="module", autouse=True)
def without_gradient():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def speaker():
    return random_dit(CONFIG).speaker


def mel(frames, seed=0, batch=1):
    return torch.randn(batch, frames, 80, generator=torch.Generator().manual_seed(seed)) - 5


def test_items_of_a_stack_equal_lone_references(speaker):
    stack = mel(57, batch=3)
    out = speaker(stack)
    assert out.shape == (3, CONFIG.dit.speaker.output_dim)
    for i in range(3):
        assert relative_error(out[i : i + 1], speaker(stack[i : i + 1])) < 1e-6


def test_the_shortest_reference_is_what_the_configuration_says(speaker):
    shortest = CONFIG.dit.speaker.min_frames
    assert shortest == 5
    assert speaker(mel(shortest)).isfinite().all()
    with pytest.raises(RuntimeError, match=r"[Pp]adding"):
        speaker(mel(shortest - 1))


@pytest.mark.parametrize("settings", [
    {"enc_kernel_sizes": [4, 2, 2, 2, 1], "enc_dilations": [1, 1, 3, 1, 1]},
    {"enc_kernel_sizes": [5, 3, 3, 3, 1], "enc_dilations": [4, 2, 3, 4, 1]},
])  # fmt: skip
def test_so_it_is_for_other_kernels(settings):
    config = sized_config("tiny", **settings)
    speaker, shortest = random_dit(config).speaker, config.dit.speaker.min_frames
    assert speaker(mel(shortest)).isfinite().all()
    with pytest.raises(RuntimeError, match=r"[Pp]adding"):
        speaker(mel(shortest - 1))


@pytest.mark.parametrize("frames", [5, 6, 57, 400])
def test_silence_is_encoded_alike_at_every_length(speaker, frames):
    out = speaker(torch.zeros(1, frames, 80))
    assert relative_error(out, speaker(torch.zeros(1, 100, 80))) < 1e-5
    assert out.abs().max() > 0.1


def test_a_constant_signal_has_a_finite_deviation(speaker):
    assert speaker(torch.full((1, 30, 80), 1e4)).isfinite().all()


def test_the_whole_reference_counts(speaker):
    one = mel(57)
    other = one.clone()
    other[0, -1] += 1
    assert relative_error(speaker(other), speaker(one)) > 1e-4
