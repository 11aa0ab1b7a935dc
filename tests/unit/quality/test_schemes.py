# SPDX-License-Identifier: Apache-2.0
"""Schemes against calls of the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from blockwave.mel.noise import seeded_noise
from blockwave.quality import share_of_largest
from blockwave.quality.schemes import render
from blockwave.quality.settings import parse_setting
from blockwave.testing import EXACT

CODES = np.random.default_rng(0).integers(1, 8192, 100)  # 200 frames: nine blocks, the last of 8 frames
QUICK = "solver=euler,steps=4"


def test_at_once(model):
    rendered = render(model, CODES, None, 3, parse_setting(QUICK))
    speech = model(CODES, seed=3, solver="euler", steps=4)
    assert np.array_equal(rendered.samples, speech.samples)
    assert np.array_equal(rendered.mel, speech.mel)
    assert rendered.joins == tuple(range(24, 200, 24))
    assert rendered.evaluated_blocks == 9
    assert rendered.seconds > 0


def test_a_voice_and_options_arrive(model):
    rendered = render(model, CODES, "Ethan", 3, parse_setting("guidance=0,steps=2"))
    assert np.array_equal(rendered.mel, model(CODES, "Ethan", 3, guidance=0.0, steps=2).mel)


@pytest.mark.parametrize(("ahead", "nearest", "furthest"), [("exact", 0, EXACT), ("0", 1e-4, 1)])
def test_streamed(model, ahead: str, nearest: float, furthest: float):
    rendered = render(model, CODES, None, 3, parse_setting(f"{QUICK},look-ahead={ahead}"))
    whole = model(CODES, seed=3, solver="euler", steps=4)
    assert nearest <= share_of_largest(rendered.mel, whole.mel) <= furthest
    assert len(rendered.samples) == len(whole.samples)
    assert rendered.joins == (72, 144)
    assert rendered.evaluated_blocks == 9


def test_windowed(model):
    """Windows of 3 + 2 + 1 blocks: what each of them says on its own, cut to its own frames."""
    rendered = render(model, CODES, None, 3, parse_setting(f"{QUICK},window"))
    noise = seeded_noise(3, 200, 80)
    mels, waves = [], []
    for first, start, stop, last in ((0, 0, 72, 96), (24, 72, 144, 168), (96, 144, 200, 200)):
        speech = model(CODES[first // 2 : last // 2], noise=noise[first:last], solver="euler", steps=4)
        mels.append(speech.mel[start - first : stop - first])
        waves.append(speech.samples[240 * (start - first) : 240 * (stop - first)])
    assert np.array_equal(rendered.mel, np.concatenate(mels))
    assert np.array_equal(rendered.samples, np.concatenate(waves))
    assert rendered.joins == (72, 144)
    assert rendered.evaluated_blocks == 4 + 6 + 5


def test_one_window_is_the_offline_result(model):
    rendered = render(model, CODES[:36], None, 3, parse_setting(f"{QUICK},window"))
    assert np.array_equal(rendered.samples, model(CODES[:36], seed=3, solver="euler", steps=4).samples)
    assert rendered.joins == ()


def test_the_global_generator_is_left_alone(model):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    render(model, CODES[:12], None, 3, parse_setting(f"{QUICK},window"))
    assert torch.equal(torch.get_rng_state(), before)
