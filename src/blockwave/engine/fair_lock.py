# SPDX-License-Identifier: Apache-2.0
"""A lock, with one place or more, that threads get in the order in which they came.

threading.Lock promises no order: a thread that computes batch after batch takes it again before those that wait for it
have woken up, and a new stream would not come in until all work is done.
"""

from __future__ import annotations

from collections import deque
from threading import Lock


class FairLock:
    """First come, first served. Not reentrant; for use in a ``with`` statement.

    Args:
        places: threads that may be inside at once.
    """

    def __init__(self, places: int = 1) -> None:
        self._guard = Lock()
        self._free = places
        self._waiting: deque[Lock] = deque()  # one gate, shut, for every thread that waits

    def __enter__(self) -> FairLock:
        with self._guard:
            if self._free:
                self._free -= 1
                return self
            gate = Lock()
            gate.acquire()
            self._waiting.append(gate)
        is_ours = False
        try:
            is_ours = gate.acquire()
        finally:
            if not is_ours:  # interrupted: leave the queue, or pass on what was just handed over
                self._give_up(gate)
        return self

    def enter_now(self) -> bool:
        """Enters if there is a place, and never waits: finalisers call it, wherever their thread may be."""
        if not self._guard.acquire(blocking=False):
            return False
        try:
            if not self._free:
                return False
            self._free -= 1
            return True
        finally:
            self._guard.release()

    def leave(self) -> None:
        """Lets the next one in."""
        with self._guard:
            self._hand_over()

    def __exit__(self, *exception: object) -> None:
        self.leave()

    def _give_up(self, gate: Lock) -> None:
        with self._guard:
            if gate in self._waiting:
                self._waiting.remove(gate)
            else:
                self._hand_over()

    def _hand_over(self) -> None:
        if self._waiting:
            self._waiting.popleft().release()  # the place is the next one's
        else:
            self._free += 1
