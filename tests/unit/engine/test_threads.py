# SPDX-License-Identifier: Apache-2.0
"""Threads that call and stream at once: the sound of serial runs, and the same bits where the batches were the same."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blockwave import Token2Wav
from blockwave.testing import EXACT
from tests.least import least_checkpoint

THREADS = 8
# Repeats, and how long the interpreter lets a thread run, in seconds: its usual value, and one that shakes the order.
USUAL, HASTY = 5e-3, 1e-5
REPEATS = [
    pytest.param(3, HASTY, id="some"),
    pytest.param(20, USUAL, id="usual", marks=pytest.mark.full),
    pytest.param(20, HASTY, id="hasty", marks=pytest.mark.full),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return least_checkpoint(tmp_path_factory.mktemp("threads") / "checkpoint")


@pytest.fixture(scope="module")
def model(folder: Path) -> Token2Wav:
    return Token2Wav.from_pretrained(folder)


@pytest.fixture
def switching() -> Iterator[Callable[[float], None]]:
    """Sets the interpreter's switch interval for one test."""
    usual = sys.getswitchinterval()
    yield sys.setswitchinterval
    sys.setswitchinterval(usual)


def codes_of(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(1, 8194, length)


def worst(got: np.ndarray, expected: np.ndarray) -> float:
    assert got.shape == expected.shape
    return float(np.abs(got - expected).max() / np.abs(expected).max())


Sounds = list[tuple[np.ndarray, np.ndarray]]  # mel and samples of every sequence


@dataclass(frozen=True)
class Job:
    """A call, or a stream that is fed in pieces; ``pieces`` repeat until all codes have come."""

    lengths: tuple[int, ...]
    options: dict[str, Any]
    pieces: tuple[int, ...] = ()
    stream: dict[str, Any] = field(default_factory=dict)

    def run(self, model: Token2Wav) -> Sounds:
        if self.pieces:
            return [self._streamed(model)]
        batch = [codes_of(length) for length in self.lengths]
        speeches = model(batch if len(batch) > 1 else batch[0], **self.options)
        return [(speech.mel, speech.samples) for speech in (speeches if len(batch) > 1 else [speeches])]

    def _streamed(self, model: Token2Wav) -> tuple[np.ndarray, np.ndarray]:
        codes, chunks, start = codes_of(self.lengths[0]), [], 0
        stream = model.stream(**self.options, **self.stream)
        for piece in itertools.cycle(self.pieces):
            chunks += stream.feed(codes[start : start + piece])
            start += piece
            if start >= len(codes):
                break
        chunks += stream.finish()
        return np.concatenate([chunk.mel for chunk in chunks]), np.concatenate([chunk.samples for chunk in chunks])


# Every job has voices, seeds, flows, guidance and pieces of its own.
MIXED = (
    Job((40,), {"voice": "Chelsie", "seed": 1, "steps": 3}),
    Job((7, 61, 24), {"voice": ["Ethan", "Chelsie", "Ethan"], "seed": [2, 3, 4], "steps": 2, "guidance": 0.0}),
    Job((119,), {"voice": "Ethan", "seed": 5, "steps": 5, "solver": "euler", "sway": None}),
    Job((100,), {"voice": "Chelsie", "seed": 6, "steps": 3}, (5, 0, 50), {"look_ahead": "exact"}),
    Job((66,), {"voice": "Ethan", "seed": 7, "steps": 2, "guidance": 2.0}, (66,), {"look_ahead": 0}),
    Job((90,), {"voice": "Ethan", "seed": 8, "steps": 3}, (13, 1), {"look_ahead": 1, "first_chunk_codes": 24}),
    Job((50,), {"seed": 9, "steps": 4, "solver": "euler", "guidance": 0.0}, (50, 0), {"look_ahead": 2}),
    Job((35,), {"voice": "Ethan", "seed": 10, "steps": 2}, (1,), {"look_ahead": "exact", "chunk_codes": 12}),
)


def together(work: list[Callable[[], Sounds]]) -> list[Sounds]:
    """Runs everything at once, each in a thread of its own; what one raises is raised here."""
    results: list[Any] = [None] * len(work)
    barrier = threading.Barrier(len(work))

    def run(i: int) -> None:
        barrier.wait()
        try:
            results[i] = work[i]()
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "threads wait for each other"
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


Switching = Callable[[float], None]


@pytest.mark.parametrize(("repeats", "interval"), REPEATS)
def test_mixed_threads_equal_serial(model: Token2Wav, switching: Switching, repeats: int, interval: float) -> None:
    assert len(MIXED) == THREADS
    switching(interval)
    serial = [job.run(model) for job in MIXED]
    scheduler = model.engine.scheduler
    scheduler.records = []
    for repeat in range(repeats):
        order = random.Random(repeat).sample(range(THREADS), THREADS)
        results = together([lambda job=MIXED[i]: job.run(model) for i in order])
        for i, sounds in zip(order, results, strict=True):
            for got, expected in zip(sounds, serial[i], strict=True):
                for part, its in zip(got, expected, strict=True):
                    assert worst(part, its) <= EXACT, (repeat, i)
    records, scheduler.records = scheduler.records, None
    assert len(scheduler) == 0
    # Else the threads would only have run one after another.
    assert sum(len({track for track, _, _ in record.tasks}) > 1 for record in records) > repeats


def prepared(model: Token2Wav) -> list[tuple[Any, list[Iterator[Any]]]]:
    """Streams to which all codes have been given, and from which nothing has been read."""
    streams = []
    for i in range(THREADS):
        stream = model.stream(
            "Ethan" if i % 3 else "Chelsie", i, look_ahead=("exact", 0, 1, 2)[i % 4], steps=2 + i % 3, guidance=i % 2
        )
        sounds = [stream.feed(codes_of(30 + 11 * i)), stream.finish()]
        streams.append((stream, sounds))
    return streams


def read(sounds: list[Iterator[Any]]) -> Sounds:
    chunks = list(itertools.chain(*sounds))
    return [(np.concatenate([chunk.mel for chunk in chunks]), np.concatenate([chunk.samples for chunk in chunks]))]


@pytest.mark.parametrize(("repeats", "interval"), REPEATS)
def test_whoever_reads_the_batches_and_the_bits_are_the_same(
    folder: Path, switching: Switching, repeats: int, interval: float
) -> None:
    """Where all codes have come before anything is read, batches do not depend on which thread runs them.

    Those of the vocoder do: it runs beside the network, for whoever waits at that moment.
    """
    switching(interval)
    usual: list[Sounds] = []
    batches = None
    models = [Token2Wav.from_pretrained(folder) for _ in range(2)]
    for repeat in range(repeats):
        model = models[min(repeat, 1)]
        scheduler = model.engine.scheduler
        streams = prepared(model)
        scheduler.records = []
        if repeat == 0:  # one thread, last stream first
            results = [read(sounds) for _, sounds in reversed(streams)][::-1]
        else:
            results = together([lambda sounds=sounds: read(sounds) for _, sounds in streams])
        first = min(track for record in scheduler.records for track, _, _ in record.tasks)
        records = [
            (record.segment, [(track - first, block, evaluation) for track, block, evaluation in record.tasks])
            for record in scheduler.records
        ]
        usual, batches = usual or results, batches or records
        assert records == batches
        for [(mel, samples)], [(its_mel, its_samples)] in zip(results, usual, strict=True):
            np.testing.assert_array_equal(mel, its_mel)
            assert worst(samples, its_samples) <= EXACT


@pytest.mark.parametrize("interval", [USUAL, HASTY])
def test_equal_records_equal_bits(model: Token2Wav, switching: Switching, interval: float) -> None:
    """Two calls at once, of one batch each, can only run in a few ways; runs that went the same way are compared."""
    jobs = [Job((12 * n,), {"seed": n, "steps": 2, "solver": "euler"}) for n in (1, 2)]
    switching(interval)
    scheduler, by_batches = model.engine.scheduler, {}
    compared = 0
    for _ in range(40):
        scheduler.records = []
        results = together([lambda job=job: job.run(model) for job in jobs])
        blocks_of = {track: 0 for record in scheduler.records for track, _, _ in record.tasks}
        for record in scheduler.records:
            for track, block, _ in record.tasks:
                blocks_of[track] = max(blocks_of[track], block + 1)
        assert sorted(blocks_of.values()) == [1, 2]  # which call a track belongs to
        batches = tuple(
            (record.segment, tuple((blocks_of[track], block, evaluation) for track, block, evaluation in record.tasks))
            for record in scheduler.records
        )
        if batches in by_batches:
            compared += 1
            for sounds, expected in zip(results, by_batches[batches], strict=True):
                for got, its in zip(sounds[0], expected[0], strict=True):
                    np.testing.assert_array_equal(got, its)
        by_batches.setdefault(batches, results)
    scheduler.records = None
    assert compared >= 30, list(by_batches)


def drive(model: Token2Wav, seed: int) -> tuple[list[Any], list[Any]]:
    """Streams and calls of one thread in an order that the seed decides: everything that came out, and the batches."""
    chance = random.Random(seed)
    scheduler, out = model.engine.scheduler, []
    scheduler.records = []
    live: list[list[Any]] = []
    for number in range(6):
        live.append([model.stream(seed=number, look_ahead=chance.choice(["exact", 0, 1]), steps=2), [], 0])
    while live:
        entry = chance.choice(live)
        stream, sounds, fed = entry
        match chance.randrange(5):
            case 0 | 1:
                count = chance.randint(0, 50)
                entry[1], entry[2] = [*sounds, stream.feed(codes_of(300)[fed : fed + count])], fed + count
            case 2 if sounds:
                out += [chunk.samples for chunk in itertools.islice(sounds[0], chance.randint(1, 3))]
                entry[1] = sounds[1:] if chance.random() < 0.5 else sounds
            case 3 if fed > 100:
                out += [part for chunk in stream.finish() for part in (chunk.samples, chunk.mel)]
                live.remove(entry)
            case 4 if chance.random() < 0.1:
                stream.cancel()
                live.remove(entry)
            case 4:
                length = chance.randint(1, 60)
                out.append(model(codes_of(length), seed=length, steps=2).samples)
    return out, [(record.segment, record.tasks) for record in scheduler.records]


@pytest.mark.parametrize("seed", range(2))
def test_the_same_order_gives_the_same_bits(folder: Path, seed: int) -> None:
    """Two engines, one thread each: the same requests in the same order are the same batches and the same sound."""
    (first, batches), (second, its_batches) = (drive(Token2Wav.from_pretrained(folder), seed) for _ in range(2))
    assert batches == its_batches
    assert len(first) == len(second) > 20
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_stream_fed_and_read_by_several_threads(model: Token2Wav, switching: Switching) -> None:
    """One thread feeds, two read; every chunk goes to one of them, and codes and noise keep their order."""
    switching(HASTY)
    codes = codes_of(1500)
    options = {"seed": 1, "steps": 2, "solver": "euler"}
    expected = Job((1500,), options, (1500,)).run(model)[0][1]
    for _ in range(3):
        stream = model.stream(**options)
        stream.PIECE_CODES, stream.MAX_UNREAD_BLOCKS = 12, 1  # readers hand on nearly all codes themselves
        fed = threading.Event()

        def feed(stream: Any = stream, fed: threading.Event = fed) -> Sounds:
            for start in range(0, 1500, 50):
                stream.feed(codes[start : start + 50])
            fed.set()
            return []

        def listen(stream: Any = stream, fed: threading.Event = fed) -> list[Any]:
            chunks: list[Any] = []
            while not fed.is_set():
                chunks += stream.feed([])
            return [*chunks, *stream.feed([])]

        _, one, other = together([feed, listen, listen])
        chunks = sorted([*one, *other, *stream.finish()], key=lambda chunk: (chunk.first_sample, len(chunk.samples)))
        assert [chunk.first_sample for chunk in chunks] == list(
            itertools.accumulate((len(chunk.samples) for chunk in chunks[:-1]), initial=0)
        )
        assert worst(np.concatenate([chunk.samples for chunk in chunks]), expected) <= EXACT


@pytest.mark.parametrize("leaving", range(3))
def test_cancelling_from_another_thread(model: Token2Wav, switching: Switching, leaving: int) -> None:
    """Whoever reads stops, and its blocks run no more; the streams beside it are what they would have been."""
    switching(HASTY)
    codes = codes_of(150)
    expected = [Job((150,), {"seed": seed, "steps": 2}, (150,)).run(model)[0][1] for seed in range(4)]
    streams = [model.stream(seed=seed, steps=2) for seed in range(4)]
    heard, gone = threading.Event(), threading.Event()

    def listen(i: int) -> Any:
        samples = []
        for chunk in itertools.chain(streams[i].feed(codes), streams[i].finish()):
            samples.append(chunk.samples)
            if i == leaving:
                heard.set()
            gone.wait(60)
        return np.concatenate(samples)

    def cancel() -> Any:
        heard.wait(60)
        streams[leaving].cancel()
        gone.set()

    *sounds, _ = together([*(lambda i=i: listen(i) for i in range(4)), cancel])
    for i, (sound, whole) in enumerate(zip(sounds, expected, strict=True)):
        assert (len(sound) < len(whole)) == (i == leaving)
        assert worst(sound, whole[: len(sound)]) <= EXACT
    assert streams[leaving].evaluated_blocks < 0.5 * streams[3].evaluated_blocks
    model([1], steps=2)
    assert len(model.engine.scheduler) == 0
