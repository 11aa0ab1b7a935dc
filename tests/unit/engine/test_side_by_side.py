# SPDX-License-Identifier: Apache-2.0
"""The vocoder beside the network: who waits for whom, and what an interrupt leaves."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from blockwave import BlockwaveError, Token2Wav
from blockwave.engine import engine as engine_module
from blockwave.engine import live as live_module
from blockwave.engine import sounding as sounding_module
from blockwave.engine.sounding import Part, make_sound
from tests.held import numbers_held
from tests.least import least_checkpoint

SECONDS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return least_checkpoint(tmp_path_factory.mktemp("beside") / "checkpoint")


@pytest.fixture
def model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Token2Wav:
    """With two places for batches of the vocoder, on any machine."""
    monkeypatch.setattr(engine_module.os, "cpu_count", lambda: 2 * torch.get_num_threads())
    return Token2Wav.from_pretrained(folder)


def codes_of(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(1, 8194, length)


def whole(model: Token2Wav, seed: int, length: int) -> Iterator[Any]:
    stream = model.stream(seed=seed, steps=2)
    yield from stream.feed(codes_of(length))
    yield from stream.finish()


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, result


class Gate:
    """Stands for the vocoder: the first batch of it waits until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.open, self.batches = threading.Event(), threading.Event(), 0
        monkeypatch.setattr(engine_module, "make_sound", self)

    def __call__(self, parts: list[Part], vocoder: Any) -> None:
        self.batches += 1
        if self.batches == 1:
            self.entered.set()
            assert self.open.wait(SECONDS)
        make_sound(parts, vocoder)


def samples(chunks: list[Any]) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in chunks])


def test_others_are_solved_and_sound_while_one_is_in_the_vocoder(model: Token2Wav, monkeypatch) -> None:
    expected = [samples(list(whole(model, seed, 60))) for seed in (1, 2)]
    gate = Gate(monkeypatch)
    held, first = in_thread(lambda: list(whole(model, 1, 60)))
    assert gate.entered.wait(SECONDS)
    other, second = in_thread(lambda: list(whole(model, 2, 60)))
    other.join(SECONDS)
    assert not other.is_alive()
    assert held.is_alive()
    called, _ = in_thread(lambda: model(codes_of(30), steps=2))
    called.join(SECONDS)
    assert not called.is_alive()
    gate.open.set()
    held.join(SECONDS)
    for [chunks], its in zip((first, second), expected, strict=True):
        np.testing.assert_allclose(samples(chunks), its, rtol=0, atol=1e-5 * np.abs(its).max())


def test_who_reads_a_stream_that_another_thread_sounds_waits_for_it(model: Token2Wav, monkeypatch) -> None:
    expected = samples(list(whole(model, 1, 60)))
    gate = Gate(monkeypatch)
    stream = model.stream(seed=1, steps=2)
    sound = stream.feed(codes_of(60))
    helper, _ = in_thread(lambda: [None for _ in iter(model.engine.step, False)])
    assert gate.entered.wait(SECONDS)
    reader, result = in_thread(lambda: list(sound))
    reader.join(0.2)
    assert reader.is_alive()
    assert gate.batches == 1  # and does not look again and again
    gate.open.set()
    reader.join(SECONDS)
    helper.join(SECONDS)
    got = samples([*result[0], *stream.finish()])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_cancelled_while_in_the_vocoder(model: Token2Wav, monkeypatch) -> None:
    list(whole(model, 1, 60))
    before = numbers_held()
    gate = Gate(monkeypatch)
    stream = model.stream(seed=1, steps=2)
    sound = stream.feed(codes_of(60))
    reader, result = in_thread(lambda: list(sound))
    assert gate.entered.wait(SECONDS)
    stream.cancel()
    gate.open.set()
    reader.join(SECONDS)
    assert result == [[]]
    assert numbers_held() == before
    assert model.engine.counters.streams_failed == 0
    assert len(model.engine.scheduler) == 0


@pytest.mark.parametrize("where", ["blamed_on", "make_sound"])
def test_an_interrupt_ends_the_streams_whose_frames_were_taken(model: Token2Wav, monkeypatch, where: str) -> None:
    """Between taking and making, or in the middle of it. Nobody waits for them any more."""
    real = getattr(engine_module, where)

    def interrupted(*arguments: Any) -> Any:
        if sys._getframe(1).f_code.co_name == "_sound_one":
            raise KeyboardInterrupt
        return real(*arguments)

    stream, other = model.stream(seed=1, steps=2), model.stream(seed=2, steps=2)
    sound, other_sound = stream.feed(codes_of(60)), other.feed(codes_of(60))
    monkeypatch.setattr(engine_module, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(sound)
    monkeypatch.undo()
    for broken in (stream.finish(), other_sound, other.finish()):
        with pytest.raises(BlockwaveError, match="a batch failed before this request was done"):
            list(broken)
    assert len(samples(list(whole(model, 3, 30)))) == 30 * 480


def test_an_interrupt_of_who_comes_back_from_the_vocoder_loses_nothing(model: Token2Wav, monkeypatch) -> None:
    """Another thread is in the network all the while, so what was made is taken in later, by whoever comes."""
    expected = samples(list(whole(model, 1, 60)))
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        model.engine._turn(lambda: (held.set(), let_go.wait(SECONDS)))

    def sound_and_hold(parts: list[Part], vocoder: Any) -> None:
        make_sound(parts, vocoder)
        if not held.is_set():
            threading.Thread(target=hold, daemon=True).start()
            assert held.wait(SECONDS)
            threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()

    stream = model.stream(seed=1, steps=2)
    sound = stream.feed(codes_of(60))
    monkeypatch.setattr(engine_module, "make_sound", sound_and_hold)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(sound)
    finally:
        signal.signal(signal.SIGINT, before)
        let_go.set()
    reader, result = in_thread(lambda: samples(list(stream.finish())))
    reader.join(SECONDS)
    np.testing.assert_allclose(result[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_what_fails_on_the_way_back_ends_its_own_stream(model: Token2Wav, monkeypatch) -> None:
    """Both were in one batch of the vocoder."""
    expected = samples(list(whole(model, 2, 60)))
    check = sounding_module.check_mel
    calls: list[Any] = []

    def strike(mel: np.ndarray) -> None:
        calls.append(mel)
        if len(calls) == 1:
            raise RuntimeError("struck")
        check(mel)

    bad, good = model.stream(seed=1, steps=2), model.stream(seed=2, steps=2)
    sounds = [bad.feed(codes_of(60)), good.feed(codes_of(60))]
    monkeypatch.setattr(sounding_module, "check_mel", strike)
    with pytest.raises(BlockwaveError, match="RuntimeError: struck"):
        list(sounds[0])
    reader, result = in_thread(lambda: samples([*sounds[1], *good.finish()]))
    reader.join(SECONDS)
    np.testing.assert_allclose(result[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert (model.engine.counters.streams_failed, len(model.engine.scheduler)) == (1, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_codes_that_get_lost_on_the_way_end_the_stream(model: Token2Wav, monkeypatch, error: type) -> None:
    """Rather than leave a hole in its sound."""

    def strike(*arguments: Any, **options: Any) -> None:
        raise error

    stream = model.stream(seed=1, steps=2)
    monkeypatch.setattr(live_module.torch, "randn", strike)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            stream.feed(codes_of(60))
        sound = None
    else:
        sound = stream.feed(codes_of(60))
    monkeypatch.undo()
    for rest in (sound or stream.feed(codes_of(60)), stream.finish()):
        with pytest.raises(BlockwaveError, match=error.__name__):
            list(rest)
    assert len(model.engine.scheduler) == 0


def test_a_stream_that_is_interrupted_before_it_is_there_leaves_no_place(model: Token2Wav, monkeypatch) -> None:
    add_live = model.engine.add_live

    def interrupted(track: Any) -> None:
        add_live(track)
        raise KeyboardInterrupt

    monkeypatch.setattr(model.engine, "add_live", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.stream()
    gc.collect()
    model.engine.settle()
    assert len(model.engine.scheduler) == 0


def test_the_time_of_the_vocoder_is_without_the_waits_for_the_network(model: Token2Wav, monkeypatch) -> None:
    """Before it another thread holds the network for a second."""
    stream = model.stream(seed=1, steps=2)
    stream.feed(codes_of(60))
    while model.engine._turn(model.engine._solve):
        pass
    held, others = threading.Event(), []

    def hold() -> None:
        held.set()
        while len(model.engine._lock._line) < 2:
            time.sleep(0.001)
        time.sleep(1)

    others.append(in_thread(lambda: model.engine._turn(hold))[0])
    assert held.wait(SECONDS)
    assert model.engine._sound()
    others[0].join(SECONDS)
    assert 0 < model.engine.counters.vocoder_s < 1
