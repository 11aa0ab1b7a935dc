# SPDX-License-Identifier: Apache-2.0
"""The engine: requests and live streams, whose blocks share one loop."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from ..config import Token2WavConfig
from ..errors import BlockwaveError
from ..speech import Timings
from ..velocity import MIN_GUIDANCE, DiT, VoiceRows
from ..velocity.modulation import TimeGrid
from ..voice import Voice
from ..waveform import BigVGAN, vocode
from .executor import Executor
from .precision import full_float32
from .request import Flow, Request
from .scheduler import MAX_BATCH_BLOCKS, Scheduler
from .state import stages_of
from .track import AT_ONCE, Emissions, Track

# A request leaves when all of it is solved.
_BULK = Emissions(first_blocks=AT_ONCE, chunk_blocks=AT_ONCE, look_ahead=None)
_KEPT_TIME_GRIDS = 8


@dataclass(frozen=True)
class Rendering:
    """mel [T, M] and samples [L] of one request, on the engine's device."""

    mel: Tensor
    samples: Tensor
    timings: Timings


class Engine:
    """Both models on one device, and the loop that runs requests and live streams on them together.

    Threads may call everything at once: one of them runs a batch, with blocks of all; the others wait for its end.

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
        self.scheduler = Scheduler(Executor(self.dit), max_batch_blocks)
        self._lock = Lock()
        self._abandoned: deque[Track] = deque()  # filled by finalisers, which may run anywhere and must not wait
        self._voices: WeakKeyDictionary[Voice, VoiceRows] = WeakKeyDictionary()
        self._time_grid = lru_cache(_KEPT_TIME_GRIDS)(self._make_time_grid)

    def render(self, requests: Sequence[Request], flow: Flow) -> list[Rendering]:
        """Renders requests in packed batches; each result equals its lone run within rounding."""
        renderings: list[Rendering] = []
        for batch in self._batches(requests):
            renderings += self._render_batch(batch, flow)
        return renderings

    @torch.inference_mode()
    def _render_batch(self, requests: Sequence[Request], flow: Flow) -> list[Rendering]:
        started_s = self._now_s()
        tracks = []
        for request in requests:
            track = self.track(request.voice, flow, request.guidance, _BULK)
            self.add_codes(track, request.codes.values, request.noise)
            self.close(track)
            tracks.append(track)
        conditioned_s = self._now_s()
        try:
            for track in tracks:
                self.add_track(track)
            while any(not track.is_done for track in tracks):
                check_sound(*tracks)
                self.step()
        finally:
            for track in tracks:
                self.remove_track(track)
        mels = [torch.cat(list(track.finished)) for track in tracks]
        solved_s = self._now_s()
        with full_float32():
            waves = vocode(self.vocoder, mels)
        timings = Timings(
            condition_s=conditioned_s - started_s,
            flow_s=solved_s - conditioned_s,
            vocoder_s=self._now_s() - solved_s,
            batch_audio_s=sum(map(len, waves)) / self.config.sample_rate,
            batch_requests=len(requests),
        )
        return [Rendering(mel, wave, timings) for mel, wave in zip(mels, waves, strict=True)]

    @torch.inference_mode()
    def track(self, voice: Voice, flow: Flow, guidance: float, emissions: Emissions) -> Track:
        """A new stream of blocks, not yet in the loop."""
        with self._lock, full_float32():
            rows, grid = self._voice_rows(voice), self._time_grid(flow)
        return Track(self.dit, self.scheduler.shape, stages_of(flow), grid, rows, guidance, emissions)

    @torch.inference_mode()
    def add_codes(self, track: Track, codes: np.ndarray, noise: Tensor) -> None:
        """More codes int64 [n] of a track with their noise [repeats n, M]."""
        with self._lock, full_float32():
            track.add(torch.from_numpy(codes).to(self.device), noise.to(self.device, self.dtype))

    def close(self, track: Track) -> None:
        """No more codes of the track come."""
        with self._lock:
            track.close()

    def add_track(self, track: Track) -> None:
        """From now on the track's blocks run as they become ready."""
        with self._lock:
            self.scheduler.add(track)

    def remove_track(self, track: Track) -> None:
        """The track's blocks run no more; its place is free after the batch that is running now."""
        with self._lock:
            self.scheduler.remove(track)

    def abandon(self, track: Track) -> None:
        """As :meth:`remove_track`, without waiting: the place is free before the next batch."""
        self._abandoned.append(track)

    def advance(self, track: Track) -> bool:
        """Runs one batch for the sake of a track; False where it has frames to take, is done, or nothing may run."""
        with self._lock:
            check_sound(track)
            if track.finished or track.is_done:
                return False
            return self._run_one()

    def step(self) -> bool:
        """Runs one batch of whatever is ready; False where nothing is."""
        with self._lock:
            return self._run_one()

    @torch.inference_mode()
    def _run_one(self) -> bool:
        while self._abandoned:
            self.scheduler.remove(self._abandoned.popleft())
        with full_float32():
            return self.scheduler.step()

    def _voice_rows(self, voice: Voice) -> VoiceRows:
        if voice not in self._voices:
            arrays = (voice.xvector, voice.reference_mel)
            xvector, mel = (torch.tensor(array).to(self.device, self.dtype) for array in arrays)
            self._voices[voice] = self.dit.voice_rows(xvector, mel)
        return self._voices[voice]

    def _make_time_grid(self, flow: Flow) -> TimeGrid:
        return self.dit.time_grid(flow.times)

    def _batches(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """Requests that are under way together: what waits between evaluations is bounded as a batch is."""
        batch: list[Request] = []
        frames, most = 0, self.scheduler.max_blocks * self.config.dit.block_size
        for request in requests:
            branches = 1 if request.guidance < MIN_GUIDANCE else 2
            more = branches * len(request.noise)
            if batch and frames + more > most:
                yield batch
                batch, frames = [], 0
            batch.append(request)
            frames += more
        if batch:
            yield batch

    def _now_s(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


def check_sound(*tracks: Track) -> None:
    """Raises BlockwaveError where a batch of one of the tracks failed, in whatever thread that was."""
    if any(track.is_broken for track in tracks):
        raise BlockwaveError("engine: a batch failed before this request was done, see the error there; ask again")
