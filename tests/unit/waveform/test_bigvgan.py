# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import copy

import pytest
import torch

from blockwave.errors import OptionError
from blockwave.ops.antialiased_snake import IMPLEMENTATIONS
from blockwave.waveform import BigVGAN, vocode
from tests.vocoders import CONFIGS, random_mel, random_vocoder


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("num_frames", [1, 2, 3, 11, 24])
def test_length_range_and_dtype(name, num_frames):
    config = CONFIGS[name]
    model = random_vocoder(config)
    with torch.inference_mode():
        wave = model(random_mel(num_frames, config.mel_dim, batch=2))
        assert wave.shape == (2, num_frames * config.samples_per_frame)
        assert 0.02 < wave.abs().max() < 0.95
        assert model.double()(random_mel(num_frames, config.mel_dim)).dtype == torch.float64


def test_batch_rows_are_alone():
    config = CONFIGS["small"]
    model, mel = random_vocoder(config), random_mel(13, config.mel_dim, batch=3)
    for row, alone in zip(model(mel), mel, strict=True):
        torch.testing.assert_close(row, model(alone[None])[0], rtol=0, atol=1e-6)


def test_loud_output_is_clamped():
    model = random_vocoder(CONFIGS["odd"], peak=5.0)
    assert model(random_mel(24, CONFIGS["odd"].mel_dim)).abs().max() == 1


def test_implementations_agree_and_the_named_one_runs():
    config, waves = CONFIGS["small"], []
    weights, mel = random_vocoder(config).state_dict(), random_mel(20, config.mel_dim)
    for implementation in IMPLEMENTATIONS:
        model = BigVGAN(config, implementation)
        model.load_state_dict(weights)
        with torch.inference_mode():
            waves.append(model(mel))
    for wave in waves[1:]:
        torch.testing.assert_close(wave, waves[0], rtol=0, atol=1e-5 * float(waves[0].abs().max()))
        assert not torch.equal(wave, waves[0])
    for implementation in IMPLEMENTATIONS[1:]:
        with pytest.raises(OptionError, match=f"got '{implementation}' while a gradient is recorded"):
            BigVGAN(config, implementation)(mel)


def test_the_first_layer_rounds_once():
    model = random_vocoder(CONFIGS["released"])
    x = random_mel(40, 80).transpose(1, 2)
    y, exact = model.conv_pre(x), copy.deepcopy(model.conv_pre).double()(x.double())
    assert y.dtype == torch.float32
    assert torch.equal(y, exact.float())
    torch.testing.assert_close(model.conv_pre(x, padded=False), y[..., 3:-3], rtol=0, atol=0)


def test_reads_no_value_back_and_has_no_buffers():
    config = CONFIGS["released"]
    with torch.device("meta"):
        model = BigVGAN(config).requires_grad_(False)
        assert model(torch.empty(2, 9, config.mel_dim)).shape == (2, 9 * config.samples_per_frame)
        waves = vocode(model, [torch.empty(n, config.mel_dim) for n in (1, 300)], window_frames=50)
    assert [len(wave) for wave in waves] == [240, 72000]
    assert not list(model.buffers())


def test_trains():
    model = random_vocoder(CONFIGS["odd"]).requires_grad_()
    model(random_mel(5, CONFIGS["odd"].mel_dim)).square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in model.parameters())


def test_refuses_other_shapes():
    model = random_vocoder(CONFIGS["odd"])
    for shape in ([4, 7], [1, 7, 4], [1, 0, 7]):
        with pytest.raises(OptionError, match=r"mel: got shape .*, expected \[B, T, 7\] with T >= 1"):
            model(torch.zeros(shape))
