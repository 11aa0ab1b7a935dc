# SPDX-License-Identifier: Apache-2.0
"""Anything that users may do, in any order: what comes out is what each would have got alone, and nothing is left."""

from __future__ import annotations

import gc
import itertools
import random
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from blockwave import CodesError, Token2Wav
from blockwave.engine import Flow
from blockwave.engine.track import Track
from blockwave.mel.noise import seeded_noise
from blockwave.testing import EXACT
from tests.held import numbers_held
from tests.least import least_checkpoint
from tests.look_ahead import look_ahead_mel

MOST_CODES = 400
FLOWS = (Flow(2), Flow(3), Flow(4, None, "euler"))
ROOMS = (2, 7, 20, 340)
REFUSED = ([9000], [-1], [0.5], [[1]], [1, 8300])


@cache
def codes_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 8194, MOST_CODES)


@dataclass(frozen=True)
class Request:
    """What decides a sound: codes are the first ``length`` of the seed's."""

    seed: int
    length: int
    voice: str
    flow: Flow
    guidance: float

    @property
    def codes(self) -> np.ndarray:
        return codes_of(self.seed)[: self.length]

    @property
    def options(self) -> dict[str, Any]:
        flow = self.flow
        return {"steps": flow.steps, "sway": flow.sway, "solver": flow.solver, "guidance": self.guidance}


@dataclass(frozen=True)
class Plan:
    """How a request is streamed, and how that ends."""

    request: Request
    look_ahead: int | str
    first: int
    chunk: int
    end: str


seeds, voices = st.integers(0, 9), st.sampled_from(["Chelsie", "Ethan"])
flows, guidances = st.sampled_from(FLOWS), st.sampled_from([0.0, 0.5, 2.0])
plans = st.builds(
    Plan,
    st.builds(Request, seeds, st.integers(0, 150), voices, flows, guidances),
    look_ahead=st.sampled_from(["exact", "exact", 0, 1, 2, 3]),
    first=st.sampled_from([12, 24]),
    chunk=st.sampled_from([12, 36, 60]),
    end=st.sampled_from(["finish", "finish", "finish", "cancel", "forget"]),
)
calls = st.lists(st.builds(Request, seeds, st.integers(1, 60), voices, flows, guidances), min_size=1, max_size=3)


@dataclass
class Listener:
    """A stream, and what was fed to it and heard of it."""

    plan: Plan
    stream: Any
    fed: int = 0
    sounds: list[Iterator[Any]] = field(default_factory=list)
    chunks: list[Any] = field(default_factory=list)

    def feed(self, count: int) -> None:
        piece = self.plan.request.codes[self.fed : self.fed + count]
        self.sounds.append(self.stream.feed(piece))
        self.fed += len(piece)

    def listen(self, most: int) -> None:
        """Reads so many chunks."""
        while self.sounds and most:
            chunk = next(self.sounds[0], None)
            if chunk is None:
                del self.sounds[0]
            else:
                self.chunks.append(chunk)
                most -= 1


class Alone:
    """The same sounds by lone offline runs."""

    def __init__(self, model: Token2Wav) -> None:
        self.model = model

    def call(self, request: Request) -> tuple[np.ndarray, np.ndarray]:
        speech = self.model(request.codes, request.voice, request.seed, **request.options)
        return speech.mel, speech.samples

    @torch.inference_mode()
    def stream(self, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """What a whole stream gives; the exact one is the call."""
        request, dit = plan.request, self.model.engine.dit
        if plan.look_ahead == "exact":
            return self.call(request)
        voice = self.model.voice(request.voice)
        rows = dit.voice_rows(*(torch.tensor(array) for array in (voice.xvector, voice.reference_mel)))
        condition = dit.condition(torch.from_numpy(request.codes), rows, request.guidance)
        noise = seeded_noise(request.seed, 2 * request.length, 80)
        sizes = (plan.first // 12, plan.chunk // 12, int(plan.look_ahead))
        mel = look_ahead_mel(dit, condition, noise, request.flow, *sizes)
        return mel.numpy(), self.model.engine.vocoder(mel[None])[0].numpy()


def near(got: list[np.ndarray], whole: np.ndarray, complete: bool) -> None:
    """Pieces of a sound are its beginning, and all of it where the stream was finished."""
    part = np.concatenate([whole[:0], *got])
    assert len(part) == len(whole) if complete else len(part) <= len(whole)
    if len(part):
        assert np.abs(part - whole[: len(part)]).max() <= EXACT * np.abs(whole).max()


class Users:
    """People with plans at one model; chance decides who does what next."""

    def __init__(self, model: Token2Wav, alone: Alone, chance: random.Random) -> None:
        self.model, self.alone, self.chance = model, alone, chance
        self.listeners: list[Listener] = []
        self.gone: list[weakref.ref[Any]] = []

    def run(self, plans: list[Plan], calls: list[list[Request]]) -> None:
        plans, calls = list(plans), list(calls)
        while plans or calls or self.listeners:
            if plans and self.chance.random() < 0.3:
                self.open(plans.pop())
            elif calls and self.chance.random() < 0.1:
                self.call(calls.pop())
            elif self.chance.random() < 0.05:
                self.model.engine.scheduler.max_blocks = self.chance.choice(ROOMS)
            elif self.listeners:
                self.go_on(self.chance.choice(self.listeners))
            elif not plans:
                self.call(calls.pop())

    def open(self, plan: Plan) -> None:
        request, sizes = plan.request, {"first_chunk_codes": plan.first, "chunk_codes": plan.chunk}
        stream = self.model.stream(request.voice, request.seed, look_ahead=plan.look_ahead, **sizes, **request.options)
        self.listeners.append(Listener(plan, stream))

    def go_on(self, listener: Listener) -> None:
        """The next thing that happens to a stream."""
        if listener.plan.end != "finish" and self.chance.random() < 0.05:
            self.end(listener)  # early
        elif self.chance.random() < 0.3:
            listener.listen(self.chance.choice((1, 2, 5)))
        elif listener.fed < listener.plan.request.length:
            if self.chance.random() < 0.1:
                with pytest.raises(CodesError):
                    listener.stream.feed(self.chance.choice(REFUSED))
            listener.feed(self.chance.randint(0, 50))
        else:
            self.end(listener)

    def end(self, listener: Listener) -> None:
        self.listeners = [other for other in self.listeners if other is not listener]
        self.gone.append(weakref.ref(listener.stream))
        complete = listener.plan.end == "finish"
        if complete and listener.fed == 0:
            with pytest.raises(CodesError, match="empty stream"):
                listener.stream.finish()
            complete = False
        elif complete:
            listener.sounds.append(listener.stream.finish())
            while listener.sounds:
                listener.listen(1)
                if self.listeners and self.chance.random() < 0.3:
                    self.chance.choice(self.listeners).listen(1)
        elif listener.plan.end == "cancel":
            listener.stream.cancel()
            assert all(next(sound, None) is None for sound in listener.sounds)
        self.check(listener, complete)

    def check(self, listener: Listener, complete: bool) -> None:
        chunks, begun = listener.chunks, 0
        for chunk in chunks:
            assert chunk.first_sample == begun
            begun += len(chunk.samples)
        if complete:
            assert begun == 480 * listener.fed
        if chunks:
            request = Request(**vars(listener.plan.request) | {"length": listener.fed})
            mel, samples = self.alone.stream(Plan(**vars(listener.plan) | {"request": request}))
            near([chunk.mel for chunk in chunks], mel, complete)
            near([chunk.samples for chunk in chunks], samples, complete)

    def call(self, batch: list[Request]) -> None:
        """As many sequences with one flow and one guidance as there are."""
        like = {"flow": batch[0].flow, "guidance": batch[0].guidance}
        batch = [Request(**vars(request) | like) for request in batch]
        codes, voices, seeds = zip(*((request.codes, request.voice, request.seed) for request in batch), strict=True)
        speeches = self.model(list(codes), list(voices), list(seeds), **batch[0].options)
        for speech, request in zip(speeches, batch, strict=True):
            mel, samples = self.alone.call(request)
            near([speech.mel], mel, complete=True)
            near([speech.samples], samples, complete=True)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Token2Wav, Token2Wav]:
    """One that everybody uses, and one for lone runs; what is made once for a voice and a flow is there."""
    folder = least_checkpoint(tmp_path_factory.mktemp("properties") / "checkpoint")
    pair = Token2Wav.from_pretrained(folder), Token2Wav.from_pretrained(folder)
    for model, voice, flow in itertools.product(pair, ("Chelsie", "Ethan"), FLOWS):
        model([1], voice, 0, steps=flow.steps, sway=flow.sway, solver=flow.solver)
    return pair


@pytest.mark.parametrize("examples", [12, pytest.param(200, marks=pytest.mark.full)])
def test_whatever_users_do(models: tuple[Token2Wav, Token2Wav], examples: int) -> None:
    model, alone = models[0], Alone(models[1])
    held = numbers_held()

    # Without shrinking, which takes minutes here; an example is small, and printed.
    @settings(max_examples=examples, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
    @given(st.lists(plans, max_size=5), st.lists(calls, max_size=2), st.integers(0, 2**32 - 1))
    def run(plans: list[Plan], calls: list[list[Request]], seed: int) -> None:
        users = Users(model, alone, random.Random(seed))
        users.run(plans, calls)
        gone = users.gone
        del users
        gc.collect()
        assert len(model.engine.scheduler) == 0
        assert numbers_held() == held
        assert [ref() for ref in gone if ref() is not None] == []
        assert not any(type(kept) is Track for kept in gc.get_objects())

    run()
