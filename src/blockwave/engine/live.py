# SPDX-License-Identifier: Apache-2.0
"""A live stream: codes in as they are made, sound out as soon as it is determined."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..codes import CodeReader
from ..errors import CodesError, OptionError
from ..speech import SpeechChunk, StreamTimings
from ..voice import Voice
from .blame import blamed_on
from .emissions import Emissions
from .request import Flow

if TYPE_CHECKING:
    from .engine import Engine
    from .track import Track


class SpeechStream:
    """Made by :meth:`Token2Wav.stream`.

    Threads may feed and read at once. Feeding takes the codes in and returns an iterator. Blocks and sound are computed
    as any stream of the model is read, those of all streams together, up to ``MAX_UNREAD_BLOCKS`` of a stream that is
    not read itself. What is not read comes with the next call.

    Attributes:
        voice: name of the voice that speaks.
        seed: of the noise.
        ended: an end id was seen; what follows it is not speech.
    """

    PIECE_CODES = 300  # handed on at once
    MAX_UNREAD_BLOCKS = 100  # what has come beyond is kept as integers

    def __init__(
        self,
        engine: Engine,
        voice: Voice,
        seed: int,
        flow: Flow,
        guidance: float,
        emissions: Emissions,
        reader: CodeReader,
    ) -> None:
        self.voice, self.seed = voice.name, seed
        self._engine, self._reader = engine, reader
        self._track = engine.track(voice, flow, guidance, emissions)
        self._generator = torch.Generator("cpu").manual_seed(seed)
        self._queue: deque[np.ndarray] = deque()
        self._mutex = Lock()
        self._num_codes = self._num_handed_on = self._num_handovers = self._frames_read = 0
        self._closing = self._closed = self._cancelled = False
        # A stream that nobody holds any more frees its place, be it that it was interrupted before it came to be. The
        # track, which the engine holds while it has one, is not held here: the error of a failed one leads back to the
        # stream.
        weakref.finalize(self, _forgotten, engine, weakref.ref(self._track))
        self._sounding = engine.add_live(self._track)

    @property
    def ended(self) -> bool:
        return self._reader.ended

    @property
    def evaluations(self) -> int:
        """Evaluations of one solve."""
        return len(self._track.stages)

    @property
    def evaluated_blocks(self) -> int:
        """Evaluations of blocks so far, those that are done again counted again; one branch."""
        return self._track.evaluated_blocks

    @property
    def timings(self) -> StreamTimings:
        """What the stream has waited for and used so far."""
        return self._sounding.timings

    def feed(self, codes: Any) -> Iterator[SpeechChunk]:
        """Takes codes [n], n >= 0, and returns the sound that they determine.

        Raises:
            CodesError: an illegal id or a wrong shape; the stream goes on as if the call had not been made.
        """
        with self._mutex:
            self._check_open()
            values = self._reader.read(codes)
            self._num_codes += len(values)
            if len(values):
                self._queue.append(values)
        self._hand_on_early()
        return self._chunks()

    def finish(self) -> Iterator[SpeechChunk]:
        """No more codes come; returns everything that is left.

        Raises:
            CodesError: no code was ever fed.
        """
        with self._mutex:
            self._check_open()
            if not self._num_codes:
                self.cancel()
                raise CodesError("codes: got an empty stream, expected at least one code before it is finished")
            self._closing = True
        self._hand_on_early()
        return self._chunks()

    def over(self, codes: Iterable[Any]) -> Iterator[SpeechChunk]:
        """The sound of a whole iterable of codes, or of pieces of codes, as it comes; finishes the stream."""
        try:
            for piece in codes:
                yield from self.feed(_piece(piece))
            yield from self.finish()
        finally:
            self.cancel()

    async def over_async(self, codes: AsyncIterable[Any]) -> AsyncIterator[SpeechChunk]:
        """As :meth:`over`, for asynchronous sources; computes in a thread of its own."""
        thread = ThreadPoolExecutor(1, "blockwave-stream")
        try:
            async for piece in codes:
                async for chunk in _in_thread(thread, self.feed, _piece(piece)):
                    yield chunk
            async for chunk in _in_thread(thread, self.finish):
                yield chunk
        finally:
            self.cancel()
            thread.shutdown(wait=False)

    def cancel(self) -> None:
        """Frees the stream's place; what it still had to compute is dropped. May be called at any time."""
        self._cancelled = True
        self._queue.clear()
        self._engine.remove(self._track, self._sounding)

    def __enter__(self) -> SpeechStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.cancel()

    def _check_open(self) -> None:
        if self._cancelled or self._closing:
            state = "cancelled" if self._cancelled else "finished"
            raise OptionError(
                f"stream: got a call on a stream that is {state}, expected an open one; make a new stream"
            )

    def _chunks(self) -> Iterator[SpeechChunk]:
        while not self._cancelled:
            handovers = self._num_handovers
            worked = self._engine.advance(self._sounding)
            while (chunk := self._next()) is not None:
                worked = True
                yield chunk
            if not worked and not self._hand_on() and handovers == self._num_handovers:
                return  # and no other reader has handed on anything since

    def _next(self) -> SpeechChunk | None:
        with self._mutex:
            if self._cancelled or not self._sounding.ready:
                return None
            chunk = self._sounding.ready.popleft()
            self._frames_read += len(chunk.mel)
            return chunk

    def _hand_on_early(self) -> None:
        """So that whoever reads next, of this stream or another, runs these blocks too; within bounds."""
        while self._unread_blocks < self.MAX_UNREAD_BLOCKS and self._hand_on():
            pass

    @property
    def _unread_blocks(self) -> int:
        dit = self._engine.config.dit
        return (self._num_handed_on * dit.repeats - self._frames_read) // dit.block_size

    def _hand_on(self) -> bool:
        """Moves some queued codes, or the end, into the track; False where there is neither."""
        with self._mutex, blamed_on(self._track):  # codes that get lost on the way end the stream
            return self._hand_on_one()
        return True  # whoever reads hears of it

    def _hand_on_one(self) -> bool:
        dit = self._engine.config.dit
        try:
            whole = self._queue.popleft()
        except IndexError:  # asked this way, since a cancellation may empty it at any moment
            if not self._closing or self._closed:
                return False
            self._engine.close(self._track)
            self._closed = True
        else:
            head, rest = whole[: self.PIECE_CODES], whole[self.PIECE_CODES :]
            if len(rest):
                self._queue.appendleft(rest)
            noise = torch.randn(dit.repeats * len(head), dit.mel_dim, generator=self._generator)
            self._engine.add_codes(self._track, head, noise)
            self._num_handed_on += len(head)
        self._num_handovers += 1
        if self._cancelled:  # meanwhile, and nobody may come who would take this out again
            self.cancel()
        return True


def _forgotten(engine: Engine, reference: weakref.ref[Track]) -> None:
    track = reference()
    if track is not None:
        engine.remove(track)


def _piece(codes: Any) -> Any:
    """A single code as a piece; everything else as it is, whatever it may be."""
    is_single = isinstance(codes, int | np.integer) or (isinstance(codes, np.ndarray | Tensor) and codes.ndim == 0)
    return [codes] if is_single else codes


async def _in_thread(
    thread: ThreadPoolExecutor, start: Callable[..., Iterator[SpeechChunk]], *arguments: Any
) -> AsyncIterator[SpeechChunk]:
    """Each chunk as soon as it is there; the event loop waits for nothing."""
    loop = asyncio.get_running_loop()
    chunks = await loop.run_in_executor(thread, start, *arguments)
    while (chunk := await loop.run_in_executor(thread, next, chunks, None)) is not None:
        yield chunk
