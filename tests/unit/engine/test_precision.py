# SPDX-License-Identifier: Apache-2.0
"""No rounding to TF32 while anything is computed, and the process's own settings afterwards, whatever threads do.

The settings can be read and written without a GPU.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

import blockwave
from blockwave import BlockwaveError, Token2Wav
from blockwave.engine.precision import full_float32
from tests.least import least_checkpoint

Settings = tuple[bool, bool]
OFF: Settings = (False, False)
# torch's own: convolutions may, matrix products may not (torch.backends).
EVERY = [(True, False), (False, True), (True, True), OFF]


def settings() -> Settings:
    """Whether convolutions and matrix products may use TF32."""
    return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32


@pytest.fixture(params=EVERY, ids=str)
def usual(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """The settings of the process during a test."""
    before = settings()
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = request.param
    yield request.param
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def test_inside_and_afterwards(usual: Settings) -> None:
    with full_float32():
        assert settings() == OFF
        with full_float32():
            assert settings() == OFF
        assert settings() == OFF
    assert settings() == usual
    with pytest.raises(KeyError), full_float32():
        raise KeyError
    assert settings() == usual


def test_every_order_of_two_threads(usual: Settings) -> None:
    """The first to come may leave first or last; they count, not the order."""
    for leave_first in (0, 1):
        enter = [threading.Event(), threading.Event()]
        inside = [threading.Event(), threading.Event()]
        leave = [threading.Event(), threading.Event()]
        left = [threading.Event(), threading.Event()]

        def work(i: int, enter=enter, inside=inside, leave=leave, left=left) -> None:
            enter[i].wait(60)
            with full_float32():
                inside[i].set()
                leave[i].wait(60)
            left[i].set()

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(2)]
        for thread in threads:
            thread.start()
        for i in range(2):
            assert settings() == (OFF if i else usual)
            enter[i].set()
            assert inside[i].wait(60)
            assert settings() == OFF
        for i, after in ((leave_first, OFF), (1 - leave_first, usual)):
            leave[i].set()
            assert left[i].wait(60)
            assert settings() == after
        for thread in threads:
            thread.join(60)


@pytest.mark.parametrize("crowded", [True, False])
def test_a_storm_of_threads(usual: Settings, crowded: bool) -> None:
    """Eight threads in and out, nested and by exceptions: mostly many inside, or mostly one, first and last at once."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    seen: list[Settings] = []
    barrier = threading.Barrier(8)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        barrier.wait(60)
        for _ in range(150 if crowded else 600):
            try:
                with ExitStack() as stack:
                    for _ in range(chance.randint(1, 3)):
                        stack.enter_context(full_float32())
                        if settings() != OFF:
                            seen.append(settings())
                        if crowded:
                            time.sleep(chance.choice((0, 0, 1e-5)))
                    if chance.random() < 0.2:
                        raise RuntimeError
                    if settings() != OFF:
                        seen.append(settings())
            except RuntimeError:
                pass

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    sys.setswitchinterval(interval)
    assert seen == []
    assert settings() == usual


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Token2Wav:
    return Token2Wav.from_pretrained(least_checkpoint(tmp_path_factory.mktemp("precision") / "checkpoint"))


@pytest.fixture
def watched(model: Token2Wav) -> Iterator[list[Settings]]:
    """The settings at every use of the transformer, the speaker encoder and the vocoder."""
    seen: list[Settings] = []
    parts = (model.engine.dit.final, model.engine.dit.speaker, model.engine.dit.time, model.engine.vocoder.conv_pre)
    hooks = [part.register_forward_pre_hook(lambda *_: seen.append(settings())) for part in parts]
    yield seen
    for hook in hooks:
        hook.remove()


def test_calls_and_streams_in_threads(model: Token2Wav, watched: list[Settings], usual: Settings) -> None:
    """A voice and a flow that nothing was computed for yet included."""
    steps = 4 + EVERY.index(usual)

    def call(seed: int) -> None:
        model([3, 1, 4] * 9, seed=seed, steps=steps)

    def stream(seed: int) -> None:
        list(model.stream("Ethan", seed, steps=steps).over([5] * 40))

    work: list[Callable[[int], None]] = [call, stream, call, stream]
    threads = [threading.Thread(target=target, args=(i,), daemon=True) for i, target in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(watched) > 4 * steps
    assert set(watched) == {OFF}
    assert settings() == usual


def test_a_failed_batch_puts_the_settings_back(model: Token2Wav, usual: Settings) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("struck")

    for part in (model.engine.dit.final, model.engine.vocoder.conv_pre):
        hook = part.register_forward_pre_hook(fail)
        with pytest.raises((BlockwaveError, RuntimeError), match="struck"):
            model([1, 2, 3], steps=2)
        with pytest.raises(BlockwaveError, match="RuntimeError: struck"):
            list(model.stream(steps=2).over([1] * 30))
        hook.remove()
        assert settings() == usual
    assert len(model([1, 2, 3], steps=2).samples) == 1440


# What users may have asked for, by torch's old names and by its new ones (2.9).
ASKED = [
    "pass",
    "torch.set_float32_matmul_precision('high')",
    "torch.set_float32_matmul_precision('medium')",
    "b.cuda.matmul.allow_tf32 = True",
    "b.cudnn.allow_tf32 = False",
    "b.fp32_precision = 'tf32'",
    "b.fp32_precision = 'ieee'",
    "b.cuda.matmul.fp32_precision = 'tf32'",
    "b.cuda.matmul.fp32_precision = b.mkldnn.matmul.fp32_precision = 'tf32'",
    "b.cudnn.fp32_precision = 'ieee'",
    "b.cudnn.conv.fp32_precision = 'ieee'",
    "b.mkldnn.matmul.fp32_precision = 'bf16'",
    "b.mkldnn.conv.fp32_precision = 'tf32'",
    "b.mkldnn.fp32_precision = 'bf16'",
]
_SETTINGS = """
import json, os, sys
import torch
from blockwave.engine.precision import full_float32
b = torch.backends
places = {
    "generic": b, "matmul": b.cuda.matmul, "cudnn": b.cudnn, "conv": b.cudnn.conv, "rnn": b.cudnn.rnn,
    "cpu": b.mkldnn, "cpu matmul": b.mkldnn.matmul, "cpu conv": b.mkldnn.conv, "cpu rnn": b.mkldnn.rnn,
}
def old(read):
    try:
        return read()
    except RuntimeError:
        return "refused"
def settings():
    return {name: place.fp32_precision for name, place in places.items()} | {
        "old matmul": old(lambda: b.cuda.matmul.allow_tf32),
        "old cudnn": old(lambda: b.cudnn.allow_tf32),
        "old precision": old(torch.get_float32_matmul_precision),
    }
for asked in json.loads(sys.argv[1]):
    if os.fork() == 0:  # settings of a process of its own
        exec(asked)
        before = settings()
        with full_float32():
            inside = settings()
            with full_float32():
                assert settings() == inside
            assert settings() == inside
        print(json.dumps([asked, before, inside, settings()]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def asked() -> dict[str, tuple[dict[str, object], ...]]:
    """Settings before, inside and afterwards."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision") or not hasattr(os, "fork"):
        pytest.skip("the new names came with torch 2.9; processes are forked")
    environment = {**os.environ, "PYTHONPATH": str(Path(blockwave.__file__).parents[1])}
    command = [sys.executable, "-c", _SETTINGS, json.dumps(ASKED)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: tuple(rest) for name, *rest in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("setting", ASKED)
def test_old_and_new_names(asked: dict[str, tuple[dict[str, object], ...]], setting: str) -> None:
    """Nothing rounds inside, whichever names were used; afterwards every name reads, or is refused, as before."""
    assert setting in asked, "full_float32 failed"
    before, inside, after = asked[setting]
    assert after == before
    for operator in ("matmul", "conv", "rnn", "cpu matmul", "cpu conv", "cpu rnn"):
        assert inside[operator] in ("ieee", "none")
    for name in ("old matmul", "old cudnn", "old precision"):
        assert inside[name] in (False, "highest") or before[name] == "refused"
