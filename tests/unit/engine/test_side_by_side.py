# SPDX-License-Identifier: Apache-2.0
"""The vocoder beside the network: who waits for whom, and what an interrupt leaves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from blockwave import BlockwaveError, Token2Wav
from blockwave.engine import engine as engine_module
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
        if sys._getframe(1).f_code.co_name == "_sound":
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
