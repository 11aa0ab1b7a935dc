# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from blockwave.errors import OptionError
from blockwave.waveform import Reach, receptive_field, vocode, windows
from blockwave.waveform.windows import plan_windows
from tests.vocoders import CONFIGS, random_mel, random_vocoder

FULL_SCALE_BOUND = 1e-6


@given(st.integers(1, 2000), st.integers(1, 300), st.integers(0, 60), st.integers(0, 60))
def test_plan_keeps_every_frame_once_with_true_context(num_frames, window_frames, left, right):
    plan = plan_windows(num_frames, window_frames, Reach(left, right))
    kept = [frame for window in plan for frame in range(window.keep_start, window.keep_stop)]
    assert kept == list(range(num_frames))
    for window in plan:
        assert 0 <= window.start <= window.keep_start < window.keep_stop <= window.stop <= num_frames
        assert window.start == 0 or window.keep_start - window.start >= left
        assert window.stop == num_frames or window.stop - window.keep_stop >= right
        assert window.stop - window.start <= window_frames + left + right
    assert len({window.stop - window.start for window in plan}) == 1
    read = sum(window.stop - window.start for window in plan)
    assert read <= num_frames + len(plan) * (left + right + 1)


@pytest.mark.parametrize(
    ("name", "num_frames", "window_frames"),
    [
        *(("odd", num_frames, 1) for num_frames in range(1, 40)),
        *(("small", num_frames, 7) for num_frames in (1, 37, 38, 44, 45, 100)),
        ("small", 33, 1),
        ("released", 71, 2),
        ("released", 150, 50),
    ],
)
def test_windows_give_the_samples_of_one_pass(name, num_frames, window_frames):
    config = CONFIGS[name]
    model, mel = random_vocoder(config), random_mel(num_frames, config.mel_dim, seed=1)
    whole = model(mel)[0]
    (wave,) = vocode(model, [mel[0]], window_frames=window_frames, max_batch_frames=300)
    assert (wave - whole).abs().max() <= FULL_SCALE_BOUND
    assert whole.abs().max() > 0.02


def test_windows_are_exact_in_float64():
    config = CONFIGS["small"]
    model, mel = random_vocoder(config).double(), random_mel(90, config.mel_dim).double()
    (wave,) = vocode(model, [mel[0]], window_frames=7)
    torch.testing.assert_close(wave, model(mel)[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("reach", [Reach(2, 15), Reach(15, 2)])
def test_too_little_context_is_noticed(monkeypatch, reach):
    config = CONFIGS["small"]
    assert receptive_field(config) == (15, 15)
    model, mel = random_vocoder(config), random_mel(90, config.mel_dim)
    monkeypatch.setattr(windows, "receptive_field", lambda config: reach)
    (wave,) = vocode(model, [mel[0]], window_frames=7)
    assert (wave - model(mel)[0]).abs().max() > 10 * FULL_SCALE_BOUND


@pytest.mark.parametrize("max_batch_frames", [1, 120, 10_000])
def test_items_of_a_list_equal_lone_runs(max_batch_frames):
    config = CONFIGS["small"]
    model = random_vocoder(config)
    mels = [random_mel(n, config.mel_dim, seed=i)[0] for i, n in enumerate((3, 50, 1, 119, 50, 60, 2, 50))]
    waves = vocode(model, mels, window_frames=20, max_batch_frames=max_batch_frames)
    for wave, mel in zip(waves, mels, strict=True):
        assert wave.shape == (len(mel) * config.samples_per_frame,)
        assert (wave - model(mel[None])[0]).abs().max() <= FULL_SCALE_BOUND


def test_a_broken_item_spoils_no_other():
    config = CONFIGS["small"]
    model = random_vocoder(config)
    mels = [random_mel(n, config.mel_dim, seed=n)[0] for n in (40, 41, 90)]
    alone = vocode(model, mels, window_frames=10)
    broken = torch.full_like(mels[0], float("nan"))
    waves = vocode(model, [broken, *mels], window_frames=10)
    assert waves[0].isnan().all()
    for wave, expected in zip(waves[1:], alone, strict=True):
        assert (wave - expected).abs().max() <= FULL_SCALE_BOUND


def test_batches_stay_within_the_limit():
    config = CONFIGS["small"]
    model, frames = random_vocoder(config), []
    model.register_forward_pre_hook(lambda module, args: frames.append(args[0].shape[:2].numel()))
    vocode(model, [random_mel(n, config.mel_dim)[0] for n in (400, 400, 5, 33)], window_frames=20, max_batch_frames=200)
    assert max(frames) <= 200
    assert max(frames) > 100
    frames.clear()
    vocode(model, [random_mel(400, config.mel_dim)[0]], window_frames=20, max_batch_frames=1)
    assert max(frames) <= 20 + 15 + 15


def test_empty_list():
    assert vocode(random_vocoder(CONFIGS["odd"]), []) == []


def test_records_no_gradient():
    model = random_vocoder(CONFIGS["odd"]).requires_grad_()
    assert not vocode(model, [random_mel(4, 7)[0]])[0].requires_grad


def test_refuses_wrong_arguments():
    model, mel = random_vocoder(CONFIGS["odd"]), random_mel(4, 7)[0]
    for name in ("window_frames", "max_batch_frames"):
        for value in (0, -3, 1.5, True):
            with pytest.raises(OptionError, match=rf"{name}: got {value}, expected an integer >= 1"):
                vocode(model, [mel], **{name: value})
    for wrong in (mel[:0], mel.T, mel[None]):
        with pytest.raises(OptionError, match=r"mels\[1\]: got shape .*, expected \[T, 7\] with T >= 1"):
            vocode(model, [mel, wrong])
