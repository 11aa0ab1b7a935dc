# SPDX-License-Identifier: Apache-2.0
"""Who leaves gives back memory and place: at once, with the stream itself still held, and with nobody coming after."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from blockwave import BlockwaveError, Token2Wav
from tests.held import numbers_held
from tests.least import least_checkpoint

CODES = np.random.default_rng(0).integers(1, 8194, 400)
KINDS = [0, 1, "exact"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Token2Wav:
    model = Token2Wav.from_pretrained(least_checkpoint(tmp_path_factory.mktemp("back") / "checkpoint"))
    list(model.stream(steps=3).over([CODES[:40]]))  # what is made once is made now
    return model


def started(model: Token2Wav, look_ahead: int | str) -> tuple[Any, Any]:
    """A stream in the middle of its work, and its sound."""
    stream = model.stream(seed=0, steps=3, look_ahead=look_ahead)
    sound = stream.feed(CODES)
    next(sound)
    return stream, sound


@pytest.mark.parametrize("look_ahead", KINDS)
def test_the_middle_of_the_work_is_seen(model: Token2Wav, look_ahead: int | str) -> None:
    """The instrument: a stream that goes on holds what it needs."""
    before = numbers_held()
    stream, _sound = started(model, look_ahead)
    assert numbers_held() >= before + 50
    assert len(model.engine.scheduler) == 1
    stream.cancel()


@pytest.mark.parametrize("look_ahead", KINDS)
def test_finished_and_held(model: Token2Wav, look_ahead: int | str) -> None:
    before = numbers_held()
    stream = model.stream(seed=0, steps=3, look_ahead=look_ahead)
    assert sum(len(chunk.samples) for chunk in stream.over([CODES])) == 480 * len(CODES)
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0


@pytest.mark.parametrize("look_ahead", KINDS)
def test_cancelled_and_held(model: Token2Wav, look_ahead: int | str) -> None:
    before = numbers_held()
    stream, sound = started(model, look_ahead)
    stream.cancel()
    assert list(sound) == []
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0
    assert stream.evaluated_blocks > 0


@pytest.mark.parametrize("look_ahead", KINDS)
def test_forgotten(model: Token2Wav, look_ahead: int | str) -> None:
    before = numbers_held()
    stream, sound = started(model, look_ahead)
    del stream, sound
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0


def test_cancelled_with_sound_that_nobody_read(model: Token2Wav) -> None:
    """Two streams run together; of one nothing is read, though all of it is there."""
    before = numbers_held()
    unread, read = (model.stream(seed=seed, steps=3) for seed in range(2))
    sounds = [[stream.feed(CODES[:100]), stream.finish()] for stream in (unread, read)]
    for sound in sounds[1]:
        list(sound)
    assert numbers_held() > before
    del sound
    unread.cancel()
    assert [list(sound) for sound in sounds[0]] == [[], []]
    assert numbers_held() == before


def test_never_read(model: Token2Wav) -> None:
    before = numbers_held()
    stream = model.stream(steps=3)
    stream.feed(CODES)
    stream.cancel()
    assert numbers_held() == before
    model.stream(steps=3)
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0


@pytest.mark.parametrize("where", ["dit", "vocoder"])
def test_failed_and_held(model: Token2Wav, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the stream nor its error holds what was being computed."""
    before = numbers_held()
    stream, sound = started(model, 1)

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("struck")

    part = model.engine.dit.final if where == "dit" else model.engine.vocoder.conv_post
    monkeypatch.setattr(part, "forward", fail)
    with pytest.raises(BlockwaveError, match="struck") as caught:
        list(sound)
    monkeypatch.undo()
    del sound
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0
    assert "struck" in str(caught.value)
    stream.cancel()


def test_failed_and_forgotten(model: Token2Wav, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error knows the stream by the frames that it went through, and the stream its error."""

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("struck")

    stream = model.stream(steps=3)
    gone = weakref.ref(stream)
    monkeypatch.setattr(model.engine.dit.final, "forward", fail)
    with pytest.raises(BlockwaveError, match="struck"):
        list(stream.over([CODES[:100]]))
    del stream
    gc.collect()
    assert gone() is None


def test_cancelled_in_the_middle_of_a_batch(model: Token2Wav) -> None:
    """The batch goes on, and after it nothing is left, though no other follows."""
    before = numbers_held()
    stream, sound = started(model, "exact")
    hook = model.engine.dit.final.register_forward_pre_hook(lambda *_: stream.cancel())
    list(sound)
    hook.remove()
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0


@pytest.mark.parametrize("look_ahead", KINDS)
def test_cancelled_while_codes_are_handed_on(
    model: Token2Wav, look_ahead: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another thread; they come to a stream that has left, and nobody comes after."""
    before = numbers_held()
    stream = model.stream(seed=0, steps=3, look_ahead=look_ahead)
    add_codes = model.engine.add_codes

    def late(*arguments: Any) -> None:
        stream.cancel()
        add_codes(*arguments)

    monkeypatch.setattr(model.engine, "add_codes", late)
    assert list(stream.feed(CODES)) == []
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0


def test_the_end_of_a_stream_that_failed_tells_what_failed(model: Token2Wav, monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes nothing in."""
    before = numbers_held()
    stream, sound = started(model, 1)

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("struck")

    monkeypatch.setattr(model.engine.dit.final, "forward", fail)
    with pytest.raises(BlockwaveError, match="RuntimeError: struck"):
        list(sound)
    for more in (lambda: stream.feed(CODES), stream.finish):
        with pytest.raises(BlockwaveError, match="RuntimeError: struck"):
            list(more())
    del sound
    assert numbers_held() == before


def test_threads_that_leave_while_others_compute(model: Token2Wav) -> None:
    """Whoever is last, everything is given back."""
    before = numbers_held()

    def visit(seed: int) -> None:
        for visit in range(6):
            stream = model.stream(seed=seed, steps=3)
            sound = stream.feed(CODES[: 40 * (visit + 1)])
            next(sound, None)
            if visit % 2:
                stream.cancel()

    threads = [threading.Thread(target=visit, args=(seed,), daemon=True) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert numbers_held() == before
    assert len(model.engine.scheduler) == 0
