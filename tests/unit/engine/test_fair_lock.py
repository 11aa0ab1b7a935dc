# SPDX-License-Identifier: Apache-2.0
"""Threads get the lock in the order in which they asked."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from blockwave.engine.fair_lock import FairLock


def wait_for(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_first_come_first_served():
    lock, order, threads = FairLock(), [], []

    def work(number: int) -> None:
        with lock:
            order.append(number)

    with lock:
        for number in range(6):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            wait_for(lambda count=number + 1: len(lock._waiting) == count)
    for thread in threads:
        thread.join()
    assert order == list(range(6))


def test_a_thread_that_never_rests_lets_others_in():
    lock, rounds, stop = FairLock(), [0], threading.Event()

    def busy() -> None:
        while not stop.is_set():
            with lock:
                rounds[0] += 1
                sum(range(1000))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(50):
            with lock:
                seen = rounds[0]
                time.sleep(0.001)
                assert rounds[0] == seen
    finally:
        stop.set()
        thread.join()
    assert rounds[0]


def test_an_interrupt_while_waiting_leaves_the_queue():
    lock, done = FairLock(), threading.Event()

    def hold() -> None:
        with lock:
            wait_for(lambda: lock._waiting)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            done.wait(30)

    thread = threading.Thread(target=hold)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        thread.start()
        wait_for(lambda: not lock._free)
        with pytest.raises(KeyboardInterrupt), lock:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
        done.set()
        thread.join()
    with lock:
        assert not lock._waiting


def test_entering_now_never_waits() -> None:
    lock = FairLock()
    assert lock.enter_now()
    assert not lock.enter_now()
    waiting = threading.Thread(target=lambda: lock.__enter__(), daemon=True)
    waiting.start()
    while not lock._waiting:
        pass
    lock.leave()  # to the one who waits
    waiting.join(60)
    assert not lock.enter_now()
    lock.leave()
    with lock:
        assert not lock.enter_now()
    with lock._guard:  # where a finaliser may find its own thread
        assert not lock.enter_now()
    assert lock.enter_now()


def test_places() -> None:
    """As many as it has are inside at once, and those that wait come in one by one."""
    lock, inside, most, order = FairLock(2), [], [0], []
    release = threading.Semaphore(0)

    def visit(number: int) -> None:
        with lock:
            inside.append(number)
            order.append(number)
            most[0] = max(most[0], len(inside))
            release.acquire()
            inside.remove(number)

    threads = [threading.Thread(target=visit, args=(number,), daemon=True) for number in range(5)]
    for number, thread in enumerate(threads):
        thread.start()
        wait_for(lambda number=number: len(order) + len(lock._waiting) == number + 1)
    assert len(inside) == 2
    for _ in threads:
        release.release()
    for thread in threads:
        thread.join(60)
    assert (most[0], order, lock._free) == (2, [0, 1, 2, 3, 4], 2)
