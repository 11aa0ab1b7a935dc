# SPDX-License-Identifier: Apache-2.0
"""A live stream: codes in as they are made, sound out as soon as it is determined."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..audio import check_samples
from ..codes import CodeReader
from ..errors import CodesError, OptionError
from ..voice import Voice
from ..waveform import StreamingVocoder
from .precision import full_float32
from .request import Flow
from .track import Emissions

if TYPE_CHECKING:
    from .engine import Engine

LookAhead = int | str
EXACT = "exact"


@dataclass(frozen=True, eq=False)
class SpeechChunk:
    """A piece of sound; the pieces of a stream one after another are its sound.

    Attributes:
        samples: float32 [L] in [-1, 1].
        sample_rate: Hz.
        first_sample: place of the first sample in the stream.
        mel: float32 [T, M], the frames that this piece was emitted with; the vocoder's sound lags behind them.
    """

    samples: np.ndarray
    sample_rate: int
    first_sample: int
    mel: np.ndarray


class SpeechStream:
    """Made by :meth:`Token2Wav.stream`.

    Threads may feed and read at once. Feeding takes the codes in and returns an iterator. Blocks are computed as any
    stream of the model is read, those of all streams together; sound is made as this one is read. What is not read
    comes with the next call.

    Attributes:
        voice: name of the voice that speaks.
        seed: of the noise.
        ended: an end id was seen; what follows it is not speech.
    """

    # Codes that a stream hands on before it waits for their sound: what has come beyond is kept as integers.
    PIECE_CODES = 300
    MAX_BACKLOG_BLOCKS = 100

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
        self._vocoder = StreamingVocoder(engine.vocoder)
        self._sound = self._vocoder.start()
        self._queue: list[np.ndarray] = []
        self._mutex = Lock()
        self._num_codes = self._num_samples = 0
        self._closing = self._flushed = self._cancelled = False
        engine.add_track(self._track)
        # A stream that nobody holds any more frees its place.
        weakref.finalize(self, engine.abandon, self._track)

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

    def feed(self, codes: Any) -> Iterator[SpeechChunk]:
        """Takes codes [n], n >= 0, and returns the sound that they determine.

        Raises:
            CodesError: an illegal id or a wrong shape; the stream goes on as if the call had not been made.
        """
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
                yield from self.feed(piece if np.ndim(piece) else [piece])
            yield from self.finish()
        finally:
            self.cancel()

    async def over_async(self, codes: AsyncIterable[Any]) -> AsyncIterator[SpeechChunk]:
        """As :meth:`over`, for asynchronous sources; computes in a thread of its own."""
        try:
            async for piece in codes:
                async for chunk in _in_thread(self.feed(piece if np.ndim(piece) else [piece])):
                    yield chunk
            async for chunk in _in_thread(self.finish()):
                yield chunk
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Frees the stream's place; what it still had to compute is dropped. May be called at any time."""
        self._cancelled = True
        self._queue.clear()
        # Not remove_track: a dying generator may come here in the middle of a batch of its own thread.
        self._engine.abandon(self._track)

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
            worked = self._engine.advance(self._track)
            for chunk in self._emit():
                worked = True
                yield chunk
            if not worked and not self._hand_on():
                return

    def _hand_on_early(self) -> None:
        """So that whoever reads next, of this stream or another, runs these blocks too; within bounds."""
        while self._track.backlog < self.MAX_BACKLOG_BLOCKS and self._hand_on():
            pass

    def _hand_on(self) -> bool:
        """Moves some queued codes, or the end, into the track; False where there is neither."""
        with self._mutex:
            return self._hand_on_one()

    def _hand_on_one(self) -> bool:
        if self._queue:
            head, rest = self._queue[0][: self.PIECE_CODES], self._queue[0][self.PIECE_CODES :]
            self._queue[:1] = [rest] if len(rest) else []
            frames = self._track.dit.config.repeats * len(head)
            noise = torch.randn(frames, self._track.dit.config.mel_dim, generator=self._generator)
            self._engine.add_codes(self._track, head, noise)
            return True
        if self._closing and not self._track.is_closed:
            self._engine.close(self._track)
            return True
        return False

    def _emit(self) -> Iterator[SpeechChunk]:
        while True:
            with self._mutex:  # the vocoder's state goes through one reader at a time
                if not self._track.finished and (self._flushed or not self._track.is_done):
                    return
                mel = self._track.finished.popleft() if self._track.finished else None
                self._flushed = self._track.is_done and not self._track.finished
                chunk = self._sounded(mel, self._flushed)
                if self._flushed:
                    self._engine.remove_track(self._track)
            if chunk is not None:
                yield chunk

    @torch.inference_mode()
    def _sounded(self, mel: torch.Tensor | None, final: bool) -> SpeechChunk | None:
        config = self._engine.config
        frames = torch.empty(0, config.dit.mel_dim) if mel is None else mel
        with full_float32():
            samples, self._sound = self._vocoder.push(self._sound, frames, final=final)
        if not len(samples) and not len(frames):
            return None
        wave = samples.to("cpu", torch.float32).numpy()
        if len(wave):
            check_samples(wave)
        first, self._num_samples = self._num_samples, self._num_samples + len(wave)
        return SpeechChunk(wave, config.sample_rate, first, frames.to("cpu", torch.float32).numpy())


async def _in_thread(chunks: Iterator[SpeechChunk]) -> AsyncIterator[SpeechChunk]:
    """Each chunk as soon as it is there, computed in another thread."""
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk
