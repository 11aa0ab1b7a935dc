# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

from blockwave.waveform import Reach, receptive_field
from tests.vocoders import CONFIGS, RELEASED, random_mel, random_vocoder


def test_released_values():
    assert receptive_field(RELEASED) == Reach(left=34, right=34)


@pytest.mark.parametrize("name", CONFIGS)
def test_gradient_ends_exactly_at_the_reach(name):
    """The value at the edge is far below rounding, but a gradient is a sum over paths and keeps it."""
    config = CONFIGS[name]
    reach, rate = receptive_field(config), config.samples_per_frame
    model = random_vocoder(config).double()
    margin = 2
    frame = reach.left + margin
    mel = (random_mel(frame + reach.right + margin + 1, config.mel_dim).double() / 4).requires_grad_()
    wave = model(mel)[0, frame * rate : (frame + 1) * rate]
    assert wave.abs().max() < 1  # the last clamp would stop the gradient
    (gradient,) = torch.autograd.grad(wave.sum(), mel)
    touched = gradient.abs().amax((0, 2)).nonzero().flatten()
    assert touched.min() == frame - reach.left
    assert touched.max() == frame + reach.right


@pytest.mark.parametrize("name", CONFIGS)
def test_frames_beyond_the_reach_change_nothing(name):
    config = CONFIGS[name]
    reach, rate = receptive_field(config), config.samples_per_frame
    model = random_vocoder(config)
    frame = reach.left + 2
    mel = random_mel(frame + reach.right + 3, config.mel_dim)
    before = model(mel)[0].unflatten(0, (-1, rate))
    mel[:, : frame - reach.left] += 5
    mel[:, frame + reach.right + 1 :] -= 5
    after = model(mel)[0].unflatten(0, (-1, rate))
    assert torch.equal(before[frame], after[frame])
    assert not torch.equal(before[frame - reach.left - 1], after[frame - reach.left - 1])
    assert not torch.equal(before[frame + reach.right + 1], after[frame + reach.right + 1])
