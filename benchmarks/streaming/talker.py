# SPDX-License-Identifier: Apache-2.0
"""A talker that says codes at a set rate, one after another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import numpy as np


class Talker:
    """Says code i at ``started_s + (i + 1) / codes_per_s`` on the clock of time.perf_counter.

    What was said and not yet taken waits, as in a queue without bound; whoever takes, gets all of it at once.

    Attributes:
        taken: codes that were handed on so far.
    """

    def __init__(self, codes: np.ndarray, codes_per_s: float, started_s: float | None = None) -> None:
        self.codes, self.codes_per_s = codes, codes_per_s
        self.started_s = time.perf_counter() if started_s is None else started_s
        self.taken = 0

    def said_s(self, num_codes: int) -> float:
        """When so many codes have been said."""
        return self.started_s + num_codes / self.codes_per_s

    def pieces(self) -> Iterator[np.ndarray]:
        """The codes, from a thread that says them one by one."""
        ready, left = threading.Condition(), threading.Event()
        said = 0

        def say() -> None:
            nonlocal said
            for i in range(len(self.codes)):
                if left.wait(max(0.0, self.said_s(i + 1) - time.perf_counter())):
                    return
                with ready:
                    said = i + 1
                    ready.notify()

        threading.Thread(target=say, daemon=True).start()
        try:
            while self.taken < len(self.codes):
                with ready:
                    ready.wait_for(lambda: said > self.taken)
                    first, self.taken = self.taken, said
                yield self.codes[first : self.taken]
        finally:
            left.set()

    async def pieces_async(self) -> AsyncIterator[np.ndarray]:
        """The codes, to a coroutine."""
        while self.taken < len(self.codes):
            await asyncio.sleep(max(0.0, self.said_s(self.taken + 1) - time.perf_counter()))
            due = int((time.perf_counter() - self.started_s) * self.codes_per_s)
            first, self.taken = self.taken, min(max(due, self.taken), len(self.codes))
            if self.taken > first:
                yield self.codes[first : self.taken]
