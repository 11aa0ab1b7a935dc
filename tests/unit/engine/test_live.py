# SPDX-License-Identifier: Apache-2.0
"""Live streams: the same sound however codes are cut, alone or beside others, from coroutines too."""

from __future__ import annotations

import asyncio
import gc
import threading

import numpy as np
import pytest

from blockwave import BlockwaveError, CodesError, OptionError, Token2Wav
from blockwave.weights.make import make_checkpoint

BOUND = 1e-5
STEPS = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Token2Wav:
    return Token2Wav.from_pretrained(make_checkpoint(tmp_path_factory.mktemp("live") / "checkpoint", "tiny"))


def codes_of(length: int) -> list[int]:
    return np.random.default_rng(length).integers(1, 8194, length).tolist()


def play(stream, codes, pieces=None) -> tuple[np.ndarray, np.ndarray]:
    """Samples and mel of a whole stream; the samples' places are checked on the way."""
    chunks, start = [], 0
    for piece in [len(codes)] if pieces is None else pieces:
        chunks += stream.feed(codes[start : start + piece])
        start += piece
    assert start >= len(codes)
    chunks += stream.finish()
    samples = np.concatenate([chunk.samples for chunk in chunks])
    assert [chunk.first_sample for chunk in chunks] == [
        sum(len(c.samples) for c in chunks[:i]) for i in range(len(chunks))
    ]
    return samples, np.concatenate([chunk.mel for chunk in chunks])


def worst(a: np.ndarray, b: np.ndarray) -> float:
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("length", [1, 11, 12, 13, 49, 119])
def test_exact_is_the_offline_result(model: Token2Wav, length: int):
    codes = codes_of(length)
    whole = model(codes, voice="Ethan", seed=4, steps=STEPS)
    stream = model.stream("ethan", 4, look_ahead="exact", steps=STEPS)
    samples, mel = play(stream, codes, [5] * (-(-length // 5)))
    assert (stream.voice, stream.seed) == ("Ethan", 4)
    assert worst(mel, whole.mel) <= BOUND
    assert worst(samples, whole.samples) <= BOUND


@pytest.mark.parametrize("look_ahead", [0, 1, "exact"])
def test_the_cut_of_the_codes_changes_nothing(model: Token2Wav, look_ahead):
    codes = codes_of(100)
    results = []
    for pieces in ([100], [1] * 100, [0, 50, 0, 49, 1], [37, 63]):
        stream = model.stream(seed=1, look_ahead=look_ahead, steps=STEPS)
        results.append(play(stream, codes, pieces)[0])
    for result in results:
        assert len(result) == 48_000
        assert worst(result, results[0]) <= BOUND


def test_special_ids_in_a_stream(model: Token2Wav):
    codes = codes_of(20)
    usual, _ = play(model.stream(seed=1, steps=2), codes)
    stream = model.stream(seed=1, steps=2)
    framed, _ = play(stream, [8293, *codes, 8294, 8292], [1, 10, 11, 1])
    assert stream.ended
    assert worst(framed, usual) <= BOUND


def test_first_sound_does_not_wait_for_the_end(model: Token2Wav):
    """The codes after which the first samples come are the same for a short and for a long text."""
    counts = []
    for length in (100, 600):
        stream = model.stream(seed=0, steps=2, first_chunk_codes=24, look_ahead=1)
        for i, code in enumerate(codes_of(length)):
            if any(len(chunk.samples) for chunk in stream.feed([code])):
                counts.append(i + 1)
                break
        stream.cancel()
    assert counts == [36, 36]


def test_a_bad_piece_is_refused_and_the_stream_goes_on(model: Token2Wav):
    codes = codes_of(30)
    stream = model.stream(seed=2, steps=2)
    chunks = list(stream.feed(codes[:10]))
    for bad, message in (
        ([9000], "got id 9000 at position 10"),
        ([1.5], "got float64"),
        ([[1, 2]], r"got shape \[1, 2\]"),
    ):
        with pytest.raises(CodesError, match=message):
            stream.feed(bad)
    chunks += [*stream.feed(codes[10:]), *stream.finish()]
    assert worst(np.concatenate([c.samples for c in chunks]), play(model.stream(seed=2, steps=2), codes)[0]) <= BOUND


def test_what_cannot_be_streamed(model: Token2Wav):
    stream = model.stream(steps=2)
    with pytest.raises(CodesError, match="got an empty stream, expected at least one code before it is finished"):
        stream.finish()
    for state, stream in (("finished", model.stream(steps=2)), ("cancelled", model.stream(steps=2))):
        list(stream.feed([1]))
        list(stream.finish()) if state == "finished" else stream.cancel()
        with pytest.raises(OptionError, match=f"a stream that is {state}, expected an open one"):
            stream.feed([1])
    limit = model.config.dit.max_position_embeddings // 2
    with pytest.raises(CodesError, match=rf"got {limit + 1} codes in one stream, expected at most {limit}"):
        model.stream(steps=2).feed([1] * (limit + 1))
    stream = model.stream(steps=2)
    with pytest.raises(CodesError, match="in one stream"):
        stream.feed([1] * (limit + 1))
    stream.feed([1] * limit)  # what was refused was not taken in
    stream.cancel()
    model.stream(steps=2, any_length=True).feed([1] * (limit + 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_chunk_codes": 10}, "first_chunk_codes: got 10, expected a multiple of 12 codes, whole blocks"),
        ({"chunk_codes": 0}, "chunk_codes: got 0, expected a multiple of 12 codes, whole blocks"),
        ({"look_ahead": -1}, "look_ahead: got -1, expected a number of blocks >= 0, or 'exact'"),
        ({"look_ahead": "all"}, "look_ahead: got 'all', expected a number of blocks >= 0, or 'exact'"),
        ({"guidance": float("nan")}, "guidance: got nan, expected a finite number"),
        ({"seed": -1}, "seed: got -1, expected an integer"),
    ],
)
def test_bad_options(model: Token2Wav, options, message):
    with pytest.raises(OptionError) as caught:
        model.stream(**options)
    assert message in str(caught.value)


def places(model: Token2Wav) -> int:
    """Streams that hold a place, after those that nobody holds any more have lost theirs."""
    gc.collect()
    model([1], steps=2)
    return len(model.engine.scheduler)


def test_cancelling_frees_the_place(model: Token2Wav):
    before = places(model)
    stream = model.stream(steps=STEPS)
    sound = stream.feed(codes_of(200))
    next(sound)
    assert len(model.engine.scheduler) == before + 1
    stream.cancel()
    assert places(model) == before
    assert list(sound) == []
    with model.stream(steps=STEPS) as stream:
        stream.feed(codes_of(20))
    assert places(model) == before


def test_a_forgotten_stream_frees_its_place(model: Token2Wav):
    before = places(model)
    sound = model.stream(steps=STEPS).feed(codes_of(100))
    next(sound)
    assert places(model) == before + 1
    del sound
    assert places(model) == before


def test_finished_streams_leave(model: Token2Wav):
    before = places(model)
    play(model.stream(steps=2), codes_of(30))
    assert len(model.engine.scheduler) == before


def test_over_iterables(model: Token2Wav):
    codes = codes_of(60)
    usual, _ = play(model.stream(seed=3, steps=2), codes)

    async def source():
        for start in range(0, 60, 7):
            await asyncio.sleep(0)
            yield codes[start : start + 7]

    async def gather():
        return [chunk async for chunk in model.stream(seed=3, steps=2).over_async(source())]

    for chunks in (
        list(model.stream(seed=3, steps=2).over(codes)),
        list(model.stream(seed=3, steps=2).over(iter([codes[:50], codes[50:]]))),
        asyncio.run(gather()),
    ):
        assert worst(np.concatenate([chunk.samples for chunk in chunks]), usual) <= BOUND


def test_a_failed_batch_ends_its_streams_and_no_others(model: Token2Wav, monkeypatch: pytest.MonkeyPatch):
    """Whatever strikes inside a batch, an interrupt included: later requests run, and the broken stream says so."""
    from blockwave.engine import executor

    stream = model.stream(seed=0, steps=2)
    sound = stream.feed(codes_of(72))
    next(sound)

    def strike(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(executor, "advance", strike)
    with pytest.raises(KeyboardInterrupt):
        model([1] * 20, steps=2)
    monkeypatch.undo()
    expected = model([1] * 20, seed=0, steps=2)
    assert len(expected.samples) == 9600
    with pytest.raises(BlockwaveError, match="a batch failed before this request was done"):
        list(sound)


def test_a_dying_generator_in_the_middle_of_a_batch(model: Token2Wav, monkeypatch: pytest.MonkeyPatch):
    """The garbage collector may close a forgotten stream while this thread runs a batch: nothing waits for itself."""
    from blockwave.engine.executor import Executor

    class Client:
        def __init__(self) -> None:
            self.sound = model.stream(seed=0, steps=2).over([codes_of(24)] * 9)
            self.me = self
            next(self.sound)

    Client()
    run = Executor.run

    def collecting(*arguments: object, **options: object) -> None:
        gc.collect()
        run(*arguments, **options)

    monkeypatch.setattr(Executor, "run", collecting)
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(len(model([1] * 12, seed=0, steps=2).samples)), daemon=True)
    thread.start()
    thread.join(60)
    assert done == [5760]


def test_streams_that_wait_share_batches(model: Token2Wav):
    """Codes that have been fed run with whatever stream is read, not only when their own is."""
    scheduler = model.engine.scheduler
    places(model)
    scheduler.records = []
    streams = [model.stream(seed=i, steps=2) for i in range(3)]
    sounds = [stream.feed(codes_of(60)) for stream in streams]
    for sound in sounds:
        list(sound)
    together = [len({track for track, _, _ in record.tasks}) for record in scheduler.records]
    scheduler.records = None
    for stream in streams:
        stream.cancel()
    assert max(together) == 3
    assert together.count(3) >= len(together) / 2


def test_a_stream_beside_a_long_request_is_not_kept_waiting(model: Token2Wav):
    """Batches until first sound, beside work in bulk that would fill every batch, are few."""
    scheduler = model.engine.scheduler
    places(model)
    thread = threading.Thread(target=lambda: model([1] * 5000, seed=0, steps=2))
    thread.start()
    while not len(scheduler):
        pass
    scheduler.records = []
    stream = model.stream(seed=1, steps=2, first_chunk_codes=24)
    first = next(chunk for chunk in stream.feed(codes_of(36)) if len(chunk.samples))
    records, scheduler.records = scheduler.records, None
    stream.cancel()
    thread.join()
    assert len(first.samples)
    assert len(records) <= 2 * 2 * 4 + 4  # two segments of four evaluations, at worst every other batch, and a margin
    assert all(len(record.tasks) <= 64 for record in records[2:])


def test_asynchronous_sound_comes_as_it_is_made(model: Token2Wav):
    """Of one long piece the first chunk comes long before the last."""

    async def source():
        yield codes_of(300)

    async def numbers():
        seen = []
        async for chunk in model.stream(seed=3, steps=2).over_async(source()):
            seen.append((len(chunk.samples), model.engine.scheduler.counters.batches))
        return seen

    seen = asyncio.run(numbers())
    assert seen[0][1] < seen[-1][1]
