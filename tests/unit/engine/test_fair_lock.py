# SPDX-License-Identifier: Apache-2.0
"""Threads get the lock in the order in which they asked."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import pytest

from blockwave.engine import fair_lock
from blockwave.engine.fair_lock import FairLock


def wait_for(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_first_come_first_served():
    lock, order, threads = FairLock(), [], []

    def start_all() -> None:
        for number in range(6):
            threads.append(threading.Thread(target=lock.run, args=(partial(order.append, number),)))
            threads[-1].start()
            wait_for(lambda count=number + 2: len(lock._line) == count)
        assert not order

    lock.run(start_all)
    for thread in threads:
        thread.join()
    assert order == list(range(6))


def test_a_thread_that_never_rests_lets_others_in():
    lock, rounds, stop = FairLock(), [0], threading.Event()

    def turn() -> None:
        rounds[0] += 1
        sum(range(1000))

    def busy() -> None:
        while not stop.is_set():
            lock.run(turn)

    def look() -> None:
        seen = rounds[0]
        time.sleep(0.001)
        assert rounds[0] == seen

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(50):
            lock.run(look)
    finally:
        stop.set()
        thread.join()
    assert rounds[0]


@contextmanager
def interrupts() -> Iterator[None]:
    """As in a program of its own: a job in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_waiting_leaves_the_queue():
    lock, done = FairLock(), threading.Event()

    def hold() -> None:
        wait_for(lambda: len(lock._line) == 2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        done.wait(30)

    thread = threading.Thread(target=lock.run, args=(hold,))
    with interrupts():
        thread.start()
        wait_for(lambda: lock._line)
        with pytest.raises(KeyboardInterrupt):
            lock.run(lambda: None)
    assert len(lock._line) == 1
    done.set()
    thread.join()
    lock.run(lambda: None)
    assert not lock._line


@pytest.mark.parametrize("now", [False, True])
def test_an_interrupt_before_any_line_loses_no_place(now: bool) -> None:
    """Wherever it strikes on the way in and out, the next one gets in."""
    lock = FairLock()
    lines: dict[tuple[str, int], None] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != fair_lock.__file__:
            return None
        if event == "line":
            lines.setdefault((frame.f_code.co_name, frame.f_lineno))
            if (frame.f_code.co_name, frame.f_lineno) == strike:
                raise KeyboardInterrupt
        return trace

    def visit() -> None:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            (lock.run_now if now else lock.run)(lambda: None)
        finally:
            sys.settrace(before)

    strike: tuple[str, int] | None = None
    visit()
    assert len(lines) > 10
    for line in list(lines):
        strike = line
        with pytest.raises(KeyboardInterrupt):
            visit()
        assert lock.run_now(lambda: None)


def test_who_was_not_called_looks_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one before was interrupted between leaving and calling."""
    lock, entered, leave = FairLock(), threading.Event(), threading.Event()
    monkeypatch.setattr(lock, "_call_next", lambda: None)
    first = threading.Thread(target=lock.run, args=(lambda: (entered.set(), leave.wait(60)),), daemon=True)
    second = threading.Thread(target=lock.run, args=(lambda: None,), daemon=True)
    first.start()
    assert entered.wait(60)
    second.start()
    wait_for(lambda: len(lock._line) == 2)
    leave.set()
    second.join(60)
    assert not second.is_alive()


def test_running_now_never_waits() -> None:
    lock, done = FairLock(), []

    def inside() -> None:
        assert not lock.run_now(lambda: done.append("inside"))

    lock.run(inside)
    assert lock.run_now(inside)
    waiting = threading.Thread(target=lock.run, args=(partial(done.append, "waited"),), daemon=True)

    def keep_waiting() -> None:
        waiting.start()
        wait_for(lambda: len(lock._line) == 2)
        inside()

    lock.run(keep_waiting)
    waiting.join(60)
    assert done == ["waited"]
    with pytest.raises(ZeroDivisionError):
        lock.run(lambda: 1 / 0)
    assert lock.run_now(lambda: None)


def test_places() -> None:
    """As many as it has are inside at once, and those that wait come in one by one."""
    lock, inside, most, order = FairLock(2), [], [0], []
    release = threading.Semaphore(0)

    def visit(number: int) -> None:
        inside.append(number)
        order.append(number)
        most[0] = max(most[0], len(inside))
        release.acquire()
        inside.remove(number)

    visits = [partial(visit, number) for number in range(5)]
    threads = [threading.Thread(target=lock.run, args=(each,), daemon=True) for each in visits]
    for number, thread in enumerate(threads):
        thread.start()
        wait_for(lambda number=number: len(lock._line) == number + 1 and len(order) == min(number + 1, 2))
    assert len(inside) == 2
    for number in range(5):
        release.release()
        wait_for(lambda number=number: len(order) == min(number + 3, 5))
    for thread in threads:
        thread.join(60)
    assert (most[0], order, len(lock._line)) == (2, [0, 1, 2, 3, 4], 0)
