# SPDX-License-Identifier: Apache-2.0
"""Many streams of one vocoder, together and in turns."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from blockwave.waveform import StreamingVocoder, streaming
from blockwave.waveform.pieces import PiecePass
from tests.vocoders import CONFIGS, random_mel, random_vocoder

SMALL = CONFIGS["small"]
EXACT = random_vocoder(SMALL).double()


@settings(max_examples=25)
@given(st.data())
def test_streams_together_equal_one_pass_each(data):
    """Streams begin and end at different times and take pieces of any length, all or some of them in one call."""
    lengths = data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=5))
    mels = [random_mel(length, SMALL.mel_dim, seed=i)[0].double() for i, length in enumerate(lengths)]
    vocoder = StreamingVocoder(EXACT)
    states = [vocoder.start() for _ in mels]
    waves = [[] for _ in mels]
    running = list(range(len(mels)))
    while running:
        chosen = data.draw(st.lists(st.sampled_from(running), min_size=1, unique=True))
        step, end_apart = data.draw(st.sampled_from((50, 24, 7, 1, 0))), data.draw(st.booleans())
        pieces = []
        for i in chosen:
            frames = mels[i][states[i].frames :][:step]
            at_end = states[i].frames + len(frames) == len(mels[i])
            pieces.append((states[i], frames, at_end and not (end_apart and len(frames))))
        for i, (samples, state) in zip(chosen, vocoder.push_many(pieces), strict=True):
            states[i] = state
            waves[i].append(samples)
        running = [i for i in running if not states[i].finished]
    for mel, wave in zip(mels, waves, strict=True):
        torch.testing.assert_close(torch.cat(wave), EXACT(mel[None])[0], rtol=0, atol=1e-12)


def test_a_batch_equals_lone_pushes_in_order_and_shape():
    vocoder = StreamingVocoder(EXACT)
    long, short = random_mel(90, SMALL.mel_dim, seed=1)[0].double(), random_mel(9, SMALL.mel_dim, seed=2)[0].double()
    _, far = vocoder.push(vocoder.start(), long)
    _, farther = vocoder.push(far, long)
    _, near = vocoder.push(vocoder.start(), short)
    begun = vocoder.start()
    pieces = [
        *((far, short, False), (near, short, False), (farther, short + 1, False), (begun, short, True)),
        *((far, long, False), (far, short, True), (near, short[:0], False), (near, short[:0], True)),
    ]
    for (samples, state), piece in zip(vocoder.push_many(pieces), pieces, strict=True):
        expected, expected_state = vocoder.push(*piece)
        torch.testing.assert_close(samples, expected, rtol=0, atol=1e-12)
        assert (state.frames, state.finished, state.shapes) == (
            expected_state.frames,
            expected_state.finished,
            expected_state.shapes,
        )
        if expected_state.held is not None:
            torch.testing.assert_close(state.held, expected_state.held, rtol=0, atol=1e-12)


def test_alike_streams_share_a_batch(monkeypatch):
    vocoder, batches = StreamingVocoder(EXACT), []

    class Counted(PiecePass):
        def __call__(self, layer, x):
            if layer is EXACT.conv_pre:
                batches.append(len(x))
            return super().__call__(layer, x)

    monkeypatch.setattr(streaming, "PiecePass", Counted)
    mel = random_mel(40, SMALL.mel_dim)[0].double()
    started = [vocoder.push(vocoder.start(), mel[:n])[1] for n in (31, 40, 33)]
    assert batches == [1, 1, 1]
    batches.clear()
    pieces = [(state, mel[:8], False) for state in [*started, vocoder.start()]]
    vocoder.push_many([*pieces, (started[0], mel[:7], False), (started[1], mel[:0], False)])
    assert sorted(batches) == [1, 1, 1, 2]  # alike are three, and a batch has a power of two
    batches.clear()
    vocoder.push_many([(started[0], mel[:8], False)] * 13)
    assert batches == [8, 4, 1]


def test_states_and_samples_of_a_batch_share_no_memory():
    vocoder = StreamingVocoder(EXACT)
    mel = random_mel(40, SMALL.mel_dim)[0].double()
    results = vocoder.push_many([(vocoder.start(), mel, False)] * 3)
    tensors = [tensor for samples, state in results for tensor in (samples, state.held) if tensor is not None]
    assert len({tensor.untyped_storage().data_ptr() for tensor in tensors}) == 6
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in tensors)


def test_a_broken_stream_spoils_no_other():
    vocoder = StreamingVocoder(EXACT)
    mel = random_mel(40, SMALL.mel_dim)[0].double()
    broken = torch.full_like(mel, float("nan"))
    (spoilt, _), (samples, state) = vocoder.push_many([(vocoder.start(), broken, False), (vocoder.start(), mel, False)])
    assert spoilt.isnan().all()
    assert state.held is not None
    assert state.held.isfinite().all()
    assert samples.isfinite().all()


def test_no_streams():
    assert StreamingVocoder(EXACT).push_many([]) == []


@pytest.mark.parametrize("num_frames", [1, 2, 3])
def test_very_short_streams(num_frames):
    vocoder, state, waves = StreamingVocoder(EXACT), StreamingVocoder(EXACT).start(), []
    mel = random_mel(num_frames, SMALL.mel_dim)[0].double()
    for frame in mel:
        samples, state = vocoder.push(state, frame[None])
        waves.append(samples)
    assert sum(map(len, waves)) == 0  # the reach is 15
    samples, _ = vocoder.push(state, mel[:0], final=True)
    torch.testing.assert_close(samples, EXACT(mel[None])[0], rtol=0, atol=1e-12)
