# SPDX-License-Identifier: Apache-2.0
"""A lock, with one place or more, that threads get in the order in which they came.

threading.Lock promises no order: a thread that computes batch after batch takes it again before those that wait for it
have woken up, and a new stream would not come in until all work is done.

An interrupt may strike between any two steps of Python, so between taking a place and noting it, or on the way to
giving it back. Here a place is not noted: everybody holds a gate of their own from before they line up, in a ``with``
statement that the interpreter itself ends, and has a place while fewer gates before theirs are held than there are
places. Whoever is interrupted, wherever it be, holds no gate any more, and is passed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice, takewhile
from threading import Lock
from typing import TypeVar

Result = TypeVar("Result")
# After this long whoever waits looks for themselves, should an interrupt have kept the one before from calling them.
_PATIENCE_S = 1.0


class _Visitor:
    """Somebody who has a place, or waits for one.

    Attributes:
        gate: held until they leave.
        bell: held until they are called.
    """

    def __init__(self) -> None:
        self.gate, self.bell = Lock(), Lock()
        self.bell.acquire()


class FairLock:
    """First come, first served. Not reentrant.

    Args:
        places: threads that may be inside at once.
    """

    def __init__(self, places: int = 1) -> None:
        self._places = places
        # Of which only operations are used that no other thread can come in between.
        self._line: deque[_Visitor] = deque()

    def run(self, work: Callable[[], Result]) -> Result:
        """Does the work as soon as there is a place."""
        visitor = _Visitor()
        try:
            with visitor.gate:
                self._line.append(visitor)
                while not self._has_place(visitor):
                    visitor.bell.acquire(timeout=_PATIENCE_S)
                return work()
        finally:
            self._drop(visitor)
            self._call_next()

    def run_now(self, work: Callable[[], object]) -> bool:
        """Does it if there is a place, and never waits: finalisers call it, wherever their thread may be."""
        visitor = _Visitor()
        try:
            with visitor.gate:
                self._line.append(visitor)
                if not self._has_place(visitor):
                    return False
                work()
                return True
        finally:
            self._drop(visitor)
            self._call_next()

    def _has_place(self, visitor: _Visitor) -> bool:
        """Once true it stays so: those before only leave, and nobody gets in before."""
        before = takewhile(lambda other: other is not visitor, tuple(self._line))
        return sum(other.gate.locked() for other in before) < self._places

    def _present(self) -> Iterator[_Visitor]:
        for visitor in tuple(self._line):
            if visitor.gate.locked():
                yield visitor
            else:
                self._drop(visitor)  # who was interrupted before they did it themselves

    def _drop(self, visitor: _Visitor) -> None:
        with suppress(ValueError):  # not yet in it, or another thread was faster
            self._line.remove(visitor)

    def _call_next(self) -> None:
        for visitor in islice(self._present(), self._places):
            with suppress(RuntimeError):  # has been called already
                visitor.bell.release()
