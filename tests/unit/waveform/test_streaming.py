# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from blockwave import Token2Wav
from blockwave.config import VocoderConfig
from blockwave.errors import OptionError
from blockwave.waveform import BigVGAN, StreamingVocoder, pieces, receptive_field, streaming
from tests.vocoders import CONFIGS, RELEASED, random_mel, random_vocoder

FULL_SCALE_BOUND = 1e-6
ALL = {
    **CONFIGS,
    # Transposed convolutions whose padding is longer than what their first inputs give, a branch without context,
    # a first branch that is behind the second.
    "overlapping": VocoderConfig(5, 8, (3, 1), ((1, 2, 1), (1, 1, 1)), (2, 1), (12, 5)),
}


@lru_cache
def random_model(name: str, dtype: torch.dtype) -> BigVGAN:
    return random_vocoder(ALL[name]).to(dtype)


@lru_cache
def case(name: str, num_frames: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """A mel [T, M] and its samples [L] in one pass."""
    model = random_model(name, dtype)
    mel = random_mel(num_frames, model.config.mel_dim, seed=num_frames).to(dtype)
    return mel[0], model(mel)[0]


def stream(model: BigVGAN, mel: Tensor, cuts: list[int], end_apart: bool = False) -> Tensor:
    """Samples [L] of the frames up to the first cut, between the cuts, and after the last one."""
    vocoder, waves = StreamingVocoder(model), []
    state, edges = vocoder.start(), [0, *cuts, len(mel)]
    for start, stop in pairwise(edges):
        samples, state = vocoder.push(state, mel[start:stop], final=stop == len(mel) and not end_apart and start < stop)
        waves.append(samples)
        if state.finished:
            break
    if not state.finished:
        samples, state = vocoder.push(state, mel[:0], final=True)
        waves.append(samples)
    assert state.frames == len(mel)
    return torch.cat(waves)


@st.composite
def cut_streams(draw: st.DrawFn, longest: int) -> tuple[int, list[int], bool]:
    num_frames = draw(st.integers(1, longest))
    cuts = draw(st.lists(st.integers(0, num_frames), max_size=12))
    return num_frames, sorted(cuts), draw(st.booleans())


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=15)
@given(cut_streams(longest=80))
@example((1, [], False))
@example((1, [0, 1], True))
@example((2, [1], True))
@example((3, [1, 2], False))
@example((80, [34, 34, 35, 69], False))
@example((36, list(range(36)), True))
def test_cutting_changes_nothing(name, cut):
    num_frames, cuts, end_apart = cut
    mel, whole = case(name, num_frames, torch.float64)
    wave = stream(random_model(name, torch.float64), mel, cuts, end_apart)
    assert wave.shape == whole.shape
    torch.testing.assert_close(wave, whole, rtol=0, atol=1e-12)


def embedded_case() -> tuple[BigVGAN, Tensor]:
    model = Token2Wav.from_pretrained()
    mel = torch.tensor(model.voice().reference_mel)
    return model.engine.vocoder.requires_grad_(False), mel.flatten(0, -2)[:120]


@pytest.mark.parametrize("name", [*ALL, "embedded"])
@pytest.mark.parametrize("step", [3, 24])
def test_float32_is_as_exact_as_one_pass(name, step):
    """Both differ from float64 by what float32 loses, each by its own order of sums."""
    if name == "embedded":
        model, mel = embedded_case()
    else:
        model, mel = random_vocoder(ALL[name]), case(name, 72, torch.float32)[0]
    whole, wave = model(mel[None])[0], stream(model, mel, list(range(step, len(mel), step)))
    exact = model.double()(mel[None].double())[0]
    rounding = float((whole - exact).abs().max())
    assert exact.abs().max() > 0.02
    assert 0 < rounding <= FULL_SCALE_BOUND
    assert (wave - exact).abs().max() <= 2 * rounding
    assert (wave - whole).abs().max() <= FULL_SCALE_BOUND


@pytest.mark.parametrize("name", ALL)
def test_gives_every_sample_that_is_determined(name):
    """Of the samples that have not been given, the first depends on the next frame; of those given, none does."""
    config = ALL[name]
    reach, rate = receptive_field(config), config.samples_per_frame
    model = random_vocoder(config).double()
    num_frames = reach.left + reach.right + 3
    mel = random_mel(num_frames + 1, config.mel_dim).double() / 4
    samples, _ = StreamingVocoder(model).push(StreamingVocoder(model).start(), mel[0, :-1])
    assert rate * (num_frames - reach.right) <= len(samples) < rate * (num_frames - reach.right + 1)
    mel.requires_grad_()
    wave = model(mel)[0]
    assert wave.abs().max() < 1  # the last clamp would stop the gradient
    for sample, depends in ((len(samples) - 1, False), (len(samples), True)):
        (gradient,) = torch.autograd.grad(wave[sample], mel, retain_graph=True)
        assert bool(gradient[0, -1].abs().max() > 0) is depends


@pytest.mark.parametrize("name", ALL)
def test_memory_does_not_grow(name):
    config = ALL[name]
    vocoder, reach = StreamingVocoder(random_vocoder(config)), receptive_field(config)
    state, sizes = vocoder.start(), []
    steps = [1, 1, 1, sum(reach) - 3, 1, 7, 0, 24, 1, 50, 3]
    for step in steps:
        samples, state = vocoder.push(state, random_mel(step, config.mel_dim)[0])
        assert state.held is not None
        assert state.nbytes == state.held.untyped_storage().nbytes()
        sizes.append(state.nbytes)
    assert max(sizes) == vocoder.state_bytes()
    assert set(sizes[-7:]) == {vocoder.state_bytes()}
    assert len(samples) == 3 * config.samples_per_frame
    _, state = vocoder.push(state, random_mel(1, config.mel_dim)[0], final=True)
    assert state.nbytes == 0


def test_memory_at_released_size():
    with torch.device("meta"):
        model = BigVGAN(RELEASED)
    megabytes = StreamingVocoder(model).state_bytes() / 1e6
    assert 3.85 < megabytes < 3.95  # the docstring's number


def test_a_piece_changes_no_state_and_keeps_no_memory_of_the_caller():
    model, (mel, whole) = random_model("small", torch.float64), case("small", 60, torch.float64)
    vocoder, buffer = StreamingVocoder(model), torch.empty_like(mel[:20])
    states, waves = [vocoder.start()], []
    for start in range(0, 60, 20):
        buffer.copy_(mel[start : start + 20])
        samples, state = vocoder.push(states[-1], buffer, final=start == 40)
        buffer.fill_(float("nan"))
        waves.append(samples.clone())
        samples.fill_(float("nan"))
        states.append(state)
    torch.testing.assert_close(torch.cat(waves), whole, rtol=0, atol=1e-12)
    for state, start, wave in zip(states, range(0, 60, 20), waves, strict=False):
        again, _ = vocoder.push(state, mel[start : start + 20], final=start == 40)
        assert torch.equal(again, wave)


def test_uses_the_weights_of_the_moment():
    config = CONFIGS["odd"]
    model, mel = random_vocoder(config), random_mel(9, config.mel_dim)[0]
    vocoder = StreamingVocoder(model)
    model.load_state_dict(random_vocoder(config, seed=1).state_dict())
    samples, _ = vocoder.push(vocoder.start(), mel, final=True)
    assert (samples - model(mel[None])[0]).abs().max() <= FULL_SCALE_BOUND


def test_records_no_gradient_and_takes_any_floats():
    model = random_vocoder(CONFIGS["odd"]).requires_grad_()
    vocoder = StreamingVocoder(model)
    samples, state = vocoder.push(vocoder.start(), random_mel(9, 7)[0].double())
    assert samples.dtype == torch.float32
    assert state.held is not None
    assert not samples.requires_grad
    assert not state.held.requires_grad


def forget_the_oldest(self: pieces.PiecePass, x: Tensor) -> None:
    self.kept.append(torch.cat((torch.zeros_like(x[..., :1]), x[..., 1:]), -1))


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [(pieces, "SNAKE_CONTEXT", pieces.SNAKE_CONTEXT - 1), (pieces.PiecePass, "_keep", forget_the_oldest)],
)
def test_context_that_is_one_sample_short_is_noticed(monkeypatch, place, name, value):
    mel, whole = case("small", 60, torch.float32)
    model = random_model("small", torch.float32)
    monkeypatch.setattr(place, name, value)
    wave = stream(model, mel, [24, 48])
    assert wave.shape == whole.shape
    assert (wave - whole).abs().max() > 10 * FULL_SCALE_BOUND


@pytest.mark.parametrize("name", ["small", "odd", "overlapping"])
def test_every_layer_needs_all_that_it_keeps(name):
    config = ALL[name]
    model, reach = random_model(name, torch.float64), receptive_field(config)
    vocoder = StreamingVocoder(model)
    mel = random_mel(2 * sum(reach) + 2, config.mel_dim)[0].double()
    _, state = vocoder.push(vocoder.start(), mel[: sum(reach) + 1])
    expected, _ = vocoder.push(state, mel[sum(reach) + 1 :])
    offset = 0
    for channels, width in state.shapes:
        assert state.held is not None
        for sample in {0, width - 1} if width else ():
            held = state.held.clone()
            held[offset : offset + channels * width].view(channels, width)[:, sample] += 1e3
            spoilt = streaming.StreamState(state.frames, False, held, state.shapes)
            samples, _ = vocoder.push(spoilt, mel[sum(reach) + 1 :])
            assert (samples - expected).abs().max() > 1e-12
        offset += channels * width


def test_refuses_wrong_arguments():
    vocoder = StreamingVocoder(random_vocoder(CONFIGS["odd"]))
    start, mel = vocoder.start(), random_mel(4, 7)[0]
    for wrong in (mel.T, mel[None], mel[0]):
        with pytest.raises(OptionError, match=r"pieces\[1\]: got a mel of shape .*, expected \[T, 7\]; frames come"):
            vocoder.push_many([(start, mel, False), (start, wrong, False)])
    _, begun = vocoder.push(start, mel[:0])
    for state in (start, begun):
        with pytest.raises(OptionError, match="got the end of a stream before its first frame, expected at least one"):
            vocoder.push(state, mel[:0], final=True)
    _, finished = vocoder.push(begun, mel, final=True)
    for final in (False, True):
        with pytest.raises(OptionError, match=r"finished after 4 frames, .* begin another with start\(\)"):
            vocoder.push(finished, mel, final)
    with pytest.raises(TypeError, match="got Linear, expected Snake, ConvTranspose1d or Conv"):
        pieces.PiecePass(None, False)(torch.nn.Linear(1, 1), torch.zeros(1, 1, 1))
