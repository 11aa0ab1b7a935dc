# SPDX-License-Identifier: Apache-2.0
"""The sound of live streams: early, shared, counted, and its own fault only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from blockwave import AudioError, BlockwaveError, CodesError, OptionError, Token2Wav
from blockwave.engine import Engine
from blockwave.engine import engine as engine_module
from blockwave.engine.executor import Executor
from blockwave.engine.live import SpeechStream
from blockwave.waveform import receptive_field, vocode
from blockwave.weights.make import make_checkpoint
from tests.vocoders import CONFIGS, random_vocoder

BOUND = 1e-5


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Token2Wav:
    return Token2Wav.from_pretrained(make_checkpoint(tmp_path_factory.mktemp("sound") / "checkpoint", "tiny"))


@pytest.fixture
def model(loaded: Token2Wav) -> Token2Wav:
    """With an engine of its own, and a vocoder that looks as far ahead as the released one."""
    config = replace(loaded.config, vocoder=CONFIGS["released"])
    return Token2Wav(Engine(loaded.engine.dit, random_vocoder(CONFIGS["released"]), config), loaded.voices)


def codes_of(length: int) -> list[int]:
    return np.random.default_rng(length).integers(1, 8194, length).tolist()


def joined(chunks) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in chunks])


def worst(a: np.ndarray, b: np.ndarray) -> float:
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("length", [100, 600])
def test_first_sound_comes_with_the_first_emission(model: Token2Wav, length: int):
    """12 codes and one block of look-ahead, though the vocoder looks further than that; whatever the length."""
    assert receptive_field(model.config.vocoder).right > 24
    stream = model.stream(seed=0, steps=2)
    sounds = ([len(chunk.samples) for chunk in stream.feed([code])] for code in codes_of(length))
    assert next(i for i, lengths in enumerate(sounds, 1) if any(lengths)) == 24
    stream.cancel()


def test_early_sound_is_that_of_a_stream_that_ends_there(model: Token2Wav):
    """It is what the look-ahead says; after it comes what the final frames say, and nothing twice."""
    codes = codes_of(100)
    stream = model.stream(seed=3, steps=2)
    (first,) = stream.feed(codes[:24])
    reach = receptive_field(model.config.vocoder)
    rate = model.config.vocoder.samples_per_frame
    assert 0 <= len(first.samples) - (48 - reach.right) * rate < rate
    short = model.stream(seed=3, steps=2)
    ended = joined([*short.feed(codes[:24]), *short.finish()])
    assert worst(first.samples, ended[: len(first.samples)]) <= BOUND
    rest = [*stream.feed(codes[24:]), *stream.finish()]
    mel = np.concatenate([first.mel, *(chunk.mel for chunk in rest)])
    (whole,) = vocode(model.engine.vocoder, [torch.from_numpy(mel)])
    later = joined(rest)
    assert len(first.samples) + len(later) == 48_000
    assert worst(later, whole.numpy()[len(first.samples) :]) <= BOUND
    # The final frames are others, so the early sound is not quite theirs.
    final = whole.numpy()[: len(first.samples)]
    assert not np.array_equal(first.samples, final)
    assert worst(first.samples, final) < 1e-3


@pytest.mark.parametrize("look_ahead", [2, 3])
def test_early_sound_is_that_of_the_emission(model: Token2Wav, look_ahead: int):
    """With more look-ahead it is as near as the look-ahead promises, and frames beyond the emission wait."""
    codes = codes_of(120)
    stream = model.stream(seed=3, steps=2, look_ahead=look_ahead)
    (first,) = stream.feed(codes[: 12 * (1 + look_ahead)])
    assert 0 < len(first.samples) <= 24 * model.config.vocoder.samples_per_frame
    whole = joined([first, *stream.feed(codes[12 * (1 + look_ahead) :]), *stream.finish()])
    assert len(whole) == 120 * 480
    assert worst(first.samples, model(codes, seed=3, steps=2).samples[: len(first.samples)]) <= 1e-4


def test_a_chunk_to_read_is_not_the_end_of_the_work(model: Token2Wav):
    """Two threads may read one stream: whoever finds that the other took the chunk goes on."""
    stream = model.stream(seed=0, steps=2)
    sound = stream.feed(codes_of(100))
    while not stream._sounding.ready:
        assert model.engine.advance(stream._sounding)
    assert model.engine.advance(stream._sounding)
    assert len(joined([*sound, *stream.finish()])) == 48_000


def test_a_large_emission_comes_in_pieces(model: Token2Wav):
    codes = codes_of(600)
    stream = model.stream(seed=1, steps=2, first_chunk_codes=600, look_ahead=0)
    chunks = [*stream.feed(codes), *stream.finish()]
    assert [len(chunk.mel) for chunk in chunks if len(chunk.mel)] == [480, 480, 240]
    (whole,) = vocode(model.engine.vocoder, [torch.from_numpy(np.concatenate([chunk.mel for chunk in chunks]))])
    assert worst(joined(chunks), whole.numpy()) <= BOUND


def test_streams_share_batches_of_the_vocoder(model: Token2Wav):
    alone = model.stream(seed=0, steps=2)
    list(alone.feed(codes_of(200)))
    by_one = model.engine.counters.vocoder_batches
    streams = [model.stream(seed=i, steps=2) for i in range(3)]
    sounds = [stream.feed(codes_of(200)) for stream in streams]
    for sound in sounds:
        list(sound)
    assert model.engine.counters.vocoder_batches - by_one <= by_one + 1


def test_timings_and_counters(model: Token2Wav):
    stream = model.stream(seed=0, steps=2)
    assert stream.timings.first_audio_s is None
    list(stream.feed(codes_of(12)))
    assert stream.timings.first_audio_s is None
    list(stream.feed(codes_of(50)))
    list(stream.finish())
    timings = stream.timings
    assert timings.first_audio_s is not None
    assert 0 <= timings.queue_s < timings.first_audio_s
    assert 0 < timings.vocoder_s < timings.flow_s + timings.vocoder_s
    assert timings.audio_s == pytest.approx(62 / 50)
    model([[1] * 10, [2] * 20], steps=2)
    counters = model.engine.counters
    assert (counters.streams, counters.streams_finished, counters.streams_failed, counters.requests) == (1, 1, 0, 2)
    assert counters.audio_s == pytest.approx(92 / 50)
    assert min(counters.flow_s, counters.vocoder_s) > 0


def test_sound_that_is_not_finite_is_the_fault_of_its_own_stream(model: Token2Wav):
    good, bad = model.stream(seed=0, steps=2), model.stream(seed=0, steps=2, guidance=1e30)
    sounds = [stream.feed(codes_of(100)) for stream in (good, bad)]
    usual = joined([*sounds[0], *good.finish()])
    with pytest.raises(AudioError, match="finite"):
        list(sounds[1])
    assert len(usual) == 48_000
    assert model.engine.counters.streams_failed == 1
    assert len(model.engine.scheduler) == 0


def test_a_failed_batch_of_the_vocoder_ends_its_streams_only(model: Token2Wav, monkeypatch: pytest.MonkeyPatch):
    stream = model.stream(seed=0, steps=2)
    sound = stream.feed(codes_of(100))

    def strike(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(engine_module, "make_sound", strike)
    with pytest.raises(BlockwaveError, match=r"a batch failed before this request was done \(MemoryError\)") as caught:
        list(sound)
    assert isinstance(caught.value.__cause__, MemoryError)
    monkeypatch.undo()
    with pytest.raises(BlockwaveError, match="a batch failed before this request was done"):
        list(stream.finish())
    other = model.stream(seed=0, steps=2)
    assert len(joined([*other.feed(codes_of(30)), *other.finish()])) == 14_400
    assert len(model.engine.scheduler) == 0


def test_what_a_stream_holds_unread_is_bounded(loaded: Token2Wav):
    """Others compute for a stream that nobody reads, but only so far ahead; nothing is lost."""
    stream, codes = loaded.stream(seed=0, steps=2, solver="euler"), codes_of(1800)
    for start in range(0, 1800, 50):
        stream.feed(codes[start : start + 50])
        loaded.engine.step()
    while loaded.engine.step():
        pass
    held = sum(len(chunk.mel) for chunk in stream._sounding.ready) // 24 + len(stream._track.solve.blocks)
    assert 50 <= held <= SpeechStream.MAX_UNREAD_BLOCKS + SpeechStream.PIECE_CODES // 12
    assert len(joined(stream.finish())) == 1800 * 480


def test_reading_one_stream_does_not_wait_for_the_work_of_others(model: Token2Wav):
    long = model.stream(seed=0, steps=10)
    long.feed(codes_of(600))
    short = model.stream(seed=1, steps=2)
    list(short.feed(codes_of(24)))
    assert long._track.may_run
    long.cancel()


def test_whoever_runs_a_batch_does_not_get_the_error_of_another(model: Token2Wav, monkeypatch: pytest.MonkeyPatch):
    good, bad = model.stream(seed=0, steps=2), model.stream(seed=1, steps=2)
    bad_sound = bad.feed(codes_of(100))
    run = Executor.run

    def striking(executor: Executor, index: int, tasks, **options: bool) -> None:
        if any(task.solve is bad._track.solve for task in tasks):
            raise RuntimeError("the other one")
        run(executor, index, tasks, **options)

    monkeypatch.setattr(Executor, "run", striking)
    model.engine.step()  # the bad one alone, so that it does not share a batch
    assert len(joined([*good.feed(codes_of(100)), *good.finish()])) == 48_000
    with pytest.raises(BlockwaveError, match="RuntimeError: the other one"):
        list(bad_sound)
    assert model.engine.counters.streams_failed == 1


def test_codes_that_cannot_be_taken_in_end_their_own_stream(model: Token2Wav, monkeypatch: pytest.MonkeyPatch):
    stream = model.stream(seed=0, steps=2)

    def strike(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(stream._track, "add", strike)
    sound = stream.feed(codes_of(50))
    assert len(model(codes_of(20), seed=0, steps=2).samples) == 9600
    with pytest.raises(BlockwaveError, match="MemoryError"):
        list(sound)
    assert len(model.engine.scheduler) == 0


def test_a_mel_that_is_not_finite_is_told_though_the_vocoder_clamps(model: Token2Wav):
    with pytest.raises(AudioError, match=r"mel: got NaN or infinity in \d+ of 28 frames"):
        model(codes_of(14), seed=1, steps=2, solver="euler", guidance=1e38)
    stream = model.stream(seed=1, steps=2, solver="euler", guidance=1e38)
    with pytest.raises(AudioError, match="mel: got NaN or infinity"):
        joined([*stream.feed(codes_of(14)), *stream.finish()])


def test_odd_values_get_the_usual_errors(model: Token2Wav):
    with pytest.raises(CodesError):
        list(model.stream(steps=2).over([[[1], [1, 2]]]))
    with pytest.raises(CodesError, match="bool"):
        model.stream(steps=2).feed([1, np.True_])
    for options in ({"look_ahead": np.array([1, 2])}, {"solver": []}, {"guidance": np.complex64(1)}):
        with pytest.raises(OptionError, match=next(iter(options))):
            model.stream(**options)
