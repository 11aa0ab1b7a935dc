# SPDX-License-Identifier: Apache-2.0
"""The vocoder against transformers on the same random weights. There mels come bins first and axes of 1 are dropped."""

from __future__ import annotations

import re

import pytest
import torch
from transformers.models.qwen2_5_omni.configuration_qwen2_5_omni import Qwen2_5OmniBigVGANConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    Qwen2_5OmniToken2WavBigVGANModel,
    kaiser_sinc_filter1d,
)

from blockwave.config import VocoderConfig
from blockwave.waveform import BigVGAN, layers, vocode
from blockwave.waveform.filters import ANTI_ALIAS_TAPS
from blockwave.waveform.normalise import normalise
from tests.vocoders import CONFIGS, RELEASED, random_mel, random_vocoder

BOUND = 1e-5  # of the reference's largest sample


def their_name(name: str, num_blocks: int) -> str:
    name = re.sub(r"^stages\.(\d+)\.up\.", r"ups.\1.0.", name)
    name = re.sub(r"^stages\.(\d+)\.blocks\.(\d+)", lambda m: f"resblocks.{int(m[1]) * num_blocks + int(m[2])}", name)
    name = re.sub(r"\.acts\.(\d+)\.log_(alpha|beta)$", r".activations.\1.act.\2", name)
    return re.sub(r"^post_act\.log_", "activation_post.act.", name)


def their_model(model: BigVGAN) -> Qwen2_5OmniToken2WavBigVGANModel:
    config: VocoderConfig = model.config
    theirs = Qwen2_5OmniToken2WavBigVGANModel(
        Qwen2_5OmniBigVGANConfig(
            mel_dim=config.mel_dim,
            upsample_initial_channel=config.initial_channels,
            resblock_kernel_sizes=list(config.resblock_kernel_sizes),
            resblock_dilation_sizes=[list(row) for row in config.resblock_dilations],
            upsample_rates=list(config.upsample_rates),
            upsample_kernel_sizes=list(config.upsample_kernel_sizes),
        )
    )
    num_blocks = len(config.resblock_kernel_sizes)
    theirs.load_state_dict({their_name(name, num_blocks): value for name, value in model.state_dict().items()})
    return theirs.eval()


def error(wave: torch.Tensor, reference: torch.Tensor) -> float:
    assert wave.shape == reference.shape
    return float((wave - reference).abs().max() / reference.abs().max())


@pytest.fixture(params=CONFIGS)
def pair(request):
    model = random_vocoder(CONFIGS[request.param])
    with torch.inference_mode():
        yield model, their_model(model)


@pytest.mark.parametrize("num_frames", [1, 2, 3, 11, 24, 37])
def test_same_samples(pair, num_frames):
    model, theirs = pair
    mel = random_mel(num_frames, model.config.mel_dim, seed=num_frames)
    expected = theirs(mel.transpose(1, 2))
    assert 0.02 < expected.abs().max() < 0.95
    assert error(model(mel)[0], expected) <= BOUND
    assert error(vocode(model, [mel[0]], window_frames=5)[0], expected) <= BOUND


def test_same_batch(pair):
    model, theirs = pair
    mel = random_mel(17, model.config.mel_dim, batch=3)
    assert error(model(mel), theirs(mel.transpose(1, 2))) <= BOUND


def test_loses_no_more_than_they_do(pair):
    model, theirs = pair
    mel = random_mel(29, model.config.mel_dim, seed=5)
    ours_32, theirs_32 = model(mel)[0], theirs(mel.transpose(1, 2))
    ours_64, theirs_64 = model.double()(mel.double())[0], theirs.double()(mel.double().transpose(1, 2))
    assert error(ours_64, theirs_32.double()) <= BOUND
    assert error(ours_64, theirs_64) <= 1e-13
    assert error(ours_32.double(), theirs_64) <= 2 * error(theirs_32.double(), theirs_64)


def test_a_filter_shifted_by_one_tap_is_noticed(pair, monkeypatch):
    model, theirs = pair
    mel = random_mel(11, model.config.mel_dim)
    expected = theirs(mel.transpose(1, 2))
    monkeypatch.setattr(layers, "ANTI_ALIAS_TAPS", (*ANTI_ALIAS_TAPS[1:], ANTI_ALIAS_TAPS[0]))
    assert error(model(mel)[0], expected) > 10 * BOUND


def test_same_filter():
    theirs = kaiser_sinc_filter1d(cutoff=0.25, half_width=0.3, kernel_size=12).flatten()
    assert torch.equal(torch.tensor(ANTI_ALIAS_TAPS), theirs)


def test_same_front_end(pair):
    _, theirs = pair
    mel = torch.linspace(-30, 100, 4001)
    exact = theirs.process_mel_spectrogram(mel.double())
    loss = (theirs.process_mel_spectrogram(mel) - exact).abs().max()
    assert (normalise(mel) - exact).abs().max() <= loss
    torch.testing.assert_close(normalise(mel.double()), exact, rtol=0, atol=1e-13)


@pytest.mark.full
def test_released_size():
    model = random_vocoder(RELEASED)
    mel = random_mel(150, RELEASED.mel_dim, seed=9)
    with torch.inference_mode():
        expected = their_model(model)(mel.transpose(1, 2))
        assert error(model(mel)[0], expected) <= BOUND
        assert error(vocode(model, [mel[0]], window_frames=60)[0], expected) <= BOUND
