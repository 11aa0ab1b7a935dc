# SPDX-License-Identifier: Apache-2.0
"""The engine: both models, and the loop in which requests and live streams share batches."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from ..config import Token2WavConfig
from ..errors import BlockwaveError
from ..velocity import DiT, VoiceRows
from ..velocity.modulation import TimeGrid
from ..voice import Voice
from ..waveform import BigVGAN, StreamingVocoder, vocode_into
from .blame import blamed_on
from .counters import Counters
from .emissions import Emissions
from .executor import Executor
from .fair_lock import FairLock
from .precision import full_float32
from .request import Flow
from .scheduler import MAX_BATCH_BLOCKS, Scheduler
from .sounding import Part, Sounding, fitting, make_sound
from .state import stages_of
from .track import Track

Result = TypeVar("Result")

_KEPT_TIME_GRIDS = 8
_MAX_VOCODER_PLACES = 4


class Engine:
    """Both models on one device, and the loop that runs requests and live streams on them together.

    Threads may call everything at once. One of them runs a batch of the network, with blocks of all; beside it others
    run batches of the vocoder, as many as the machine has cores for. The rest wait for what they need, in the order in
    which they asked. What changes the set of streams, or adds to one, waits for nothing: it takes effect before the
    next batch.

    Args:
        dit, vocoder: loaded modules on one device.
        config: of the checkpoint.
        max_batch_blocks: blocks in a batch, all branches counted.
    """

    def __init__(
        self, dit: DiT, vocoder: BigVGAN, config: Token2WavConfig, max_batch_blocks: int = MAX_BATCH_BLOCKS
    ) -> None:
        self.dit, self.vocoder, self.config = dit.eval(), vocoder.eval(), config
        self.device = dit.final.weight.device
        self.dtype = dit.final.weight.dtype  # of states and mels; matrix products may be narrower
        self.counters = Counters()
        self.scheduler = Scheduler(Executor(self.dit), max_batch_blocks, self.counters)
        self._streaming_vocoder = StreamingVocoder(self.vocoder)
        self._soundings: dict[Track, Sounding] = {}  # in the order in which they were last served
        self._no_frames = vocoder.conv_pre.weight.new_empty(0, config.dit.mel_dim)
        self._lock = FairLock()  # of the network and of everything that the engine knows
        self._vocoder_lock = FairLock(self._vocoder_places())  # is never waited for inside the other
        # What has to happen between two batches. Finalisers add to it too, which may run anywhere and must not wait.
        self._inbox: deque[tuple[Track, Callable[[], object]]] = deque()
        self._preparing = Lock()
        self._voices: WeakKeyDictionary[Voice, VoiceRows] = WeakKeyDictionary()
        self._time_grid = lru_cache(_KEPT_TIME_GRIDS)(self._make_time_grid)

    @torch.inference_mode()
    def track(self, voice: Voice, flow: Flow, guidance: float, emissions: Emissions) -> Track:
        """A new stream of blocks, not yet in the loop."""
        with self._preparing, full_float32():
            rows, grid = self._voice_rows(voice), self._time_grid(flow)
        return Track(self.dit, self.scheduler.shape, stages_of(flow), grid, rows, guidance, emissions)

    @torch.inference_mode()
    def add_codes(self, track: Track, codes: np.ndarray, noise: Tensor) -> None:
        """More codes int64 [n] of a track with their noise [repeats n, M]."""
        with full_float32():
            rows = track.rows_of(torch.from_numpy(codes).to(self.device))
        self._inbox.append((track, partial(track.add, rows, noise.to(self.device, self.dtype))))

    def close(self, track: Track) -> None:
        """No more codes of the track come."""
        self._inbox.append((track, track.close))

    def add_track(self, track: Track) -> None:
        """From the next batch on the track's blocks run as they become ready; their frames stay with the track."""
        self._inbox.append((track, partial(self.scheduler.add, track)))

    def add_live(self, track: Track) -> Sounding:
        """As :meth:`add_track`; the frames become sound as they come."""
        sounding = Sounding(track, self._streaming_vocoder, self.config.sample_rate)
        self._inbox.append((track, partial(self._open, sounding)))
        return sounding

    def remove(self, track: Track, sounding: Sounding | None = None) -> None:
        """The track's place and memory are free at once, or after the batch that is running.

        Args:
            sounding: whose chunks nobody will read.
        """
        self._inbox.append((track, partial(self._leave, track, sounding)))
        self._tidy()

    def settle(self) -> None:
        """Waits until what was asked for has taken effect."""
        self._turn(lambda: None)

    def advance(self, sounding: Sounding) -> bool:
        """Runs one batch for the sake of a live stream, unless it has a chunk to read; False where nothing may run.

        Raises:
            BlockwaveError: its sound is not finite, or a batch of it failed.
        """
        followed = self._turn(partial(self._solve_for, sounding))
        if isinstance(followed, bool):
            return followed
        followed()
        return True

    def _solve_for(self, sounding: Sounding) -> bool | Callable[[], object]:
        """What :meth:`advance` does while no other thread does such a thing; what it does after that, or its result."""
        if sounding.ready:
            return True
        if sounding.fault is not None:
            raise sounding.fault
        check_sound(sounding.track)
        if sounding.is_back is not None:  # another thread is at it
            return sounding.is_back.wait
        return self._sound if sounding.waits else sounding.track.may_run and self._solve()

    def step(self) -> bool:
        """Runs one batch of whatever is ready; False where nothing is."""
        return self._turn(self._solve) or self._sound()

    def vocode(self, mels: list[Tensor]) -> list[Tensor]:
        """Samples [L_i] of whole mels [T_i, M]; what others wait for runs in between."""
        waves = [mel.new_empty(len(mel) * self.vocoder.config.samples_per_frame) for mel in mels]
        batches = vocode_into(waves, self.vocoder, mels)
        while self._vocoder_lock.run(partial(self._vocode_one, batches)):
            pass
        self._turn(partial(self.counters.rendered, len(mels), sum(map(len, waves)) / self.config.sample_rate))
        return waves

    @torch.inference_mode()
    def _vocode_one(self, batches: Iterator[None]) -> bool:
        started_s = time.perf_counter()
        with full_float32():
            if next(batches, batches) is batches:
                return False
        self._turn(partial(self.counters.vocoded, started_s, time.perf_counter()))
        return True

    @torch.inference_mode()
    def _solve(self) -> bool:
        """One batch of the network."""
        try:
            with full_float32():
                return self.scheduler.step()
        finally:
            self._drop_failed()

    def _sound(self) -> bool:
        """One batch of the vocoder, of those who have waited longest; False where nobody waits for one."""
        return self._vocoder_lock.run(self._sound_one)

    @torch.inference_mode()
    def _sound_one(self) -> bool:
        parts: list[Part] = []
        started_s = time.perf_counter()
        try:
            self._turn(partial(self._take, parts))
            started_s = time.perf_counter()
            with blamed_on(*(part.sounding.track for part in parts)), full_float32():
                make_sound(parts, self._streaming_vocoder)
        finally:
            there_were = len(parts) > 0
            self._hand_back(parts, started_s)
        return there_were

    def _take(self, parts: list[Part]) -> None:
        waiting = [sounding for sounding in self._soundings.values() if sounding.waits]
        for sounding in fitting(waiting):
            sounding.take(parts, self._no_frames)

    def _hand_back(self, parts: list[Part], started_s: float) -> None:
        """Waits for nobody: an interrupt of the wait would leave these streams in the vocoder for ever."""
        ended_s = time.perf_counter()
        for i, part in enumerate(parts):
            self._inbox.append((part.sounding.track, partial(self._give, part, started_s, ended_s, i == 0)))
            part.is_back.set()
        parts.clear()  # else the error of a failed batch would hold them
        self._tidy()

    def _give(self, part: Part, started_s: float, ended_s: float, is_first: bool) -> None:
        if is_first:
            self.counters.vocoded(started_s, ended_s)
        sounding, before = part.sounding, part.sounding.num_samples
        sounding.give(part, started_s, ended_s)
        self.counters.audio_s += (sounding.num_samples - before) / self.config.sample_rate
        if sounding.track not in self._soundings:
            return  # it has left
        if sounding.is_over and sounding.fault is None:
            self.counters.streams_finished += 1
            self._forget(sounding.track)
        else:
            self._soundings[sounding.track] = self._soundings.pop(sounding.track)  # behind all others

    def _drop_failed(self) -> None:
        for sounding in list(self._soundings.values()):
            if sounding.track.is_broken or sounding.fault is not None:
                self.counters.streams_failed += 1
                self._forget(sounding.track)

    def _turn(self, work: Callable[[], Result]) -> Result:
        """What only one thread at a time may do, after all that was asked for before."""

        def take_in_and_work() -> Result:
            self._take_in()
            return work()

        try:
            return self._lock.run(take_in_and_work)
        finally:
            self._tidy()

    def _tidy(self) -> None:
        """Takes in what came while nobody could, so that who leaves an engine at rest leaves no memory behind."""
        while self._inbox and self._lock.run_now(self._take_in):
            pass

    @torch.inference_mode()
    def _take_in(self) -> None:
        while self._inbox:
            track = self._inbox[0][0]
            with blamed_on(track):  # for an interrupt as well, which would lose it
                _, action = self._inbox.popleft()
                action()
        self._drop_failed()

    def _open(self, sounding: Sounding) -> None:
        self.scheduler.add(sounding.track)
        self._soundings[sounding.track] = sounding
        self.counters.streams += 1

    def _leave(self, track: Track, sounding: Sounding | None) -> None:
        self._forget(track)
        if sounding is not None:
            sounding.ready.clear()

    def _forget(self, track: Track) -> None:
        self.scheduler.remove(track)
        sounding = self._soundings.pop(track, None)
        if sounding is not None:
            sounding.let_go()
        track.let_go()

    def _voice_rows(self, voice: Voice) -> VoiceRows:
        if voice not in self._voices:
            arrays = (voice.xvector, voice.reference_mel)
            xvector, mel = (torch.tensor(array).to(self.device, self.dtype) for array in arrays)
            self._voices[voice] = self.dit.voice_rows(xvector, mel)
        return self._voices[voice]

    def _make_time_grid(self, flow: Flow) -> TimeGrid:
        return self.dit.time_grid(flow.times)

    def _vocoder_places(self) -> int:
        """How many batches of the vocoder run at once; each has activations of its own."""
        if self.device.type != "cpu":
            return 1
        return min(max(1, (os.cpu_count() or 1) // torch.get_num_threads()), _MAX_VOCODER_PLACES)

    def now_s(self) -> float:
        """time.perf_counter, after what the device still had to do."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


def check_sound(*tracks: Track) -> None:
    """Raises BlockwaveError where something ended one of the tracks, in whatever thread that was."""
    for track in tracks:
        if track.failure is not None:
            what = f"{type(track.failure).__name__}: {track.failure}".rstrip(": ")
            raise BlockwaveError(
                f"engine: a batch failed before this request was done ({what}); ask again"
            ) from track.failure
