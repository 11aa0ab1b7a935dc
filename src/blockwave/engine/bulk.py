# SPDX-License-Identifier: Apache-2.0
"""Whole requests through the loop: all codes are there, and all of the sound is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..speech import Timings
from ..velocity import MIN_GUIDANCE
from .emissions import Emissions
from .engine import Engine, check_sound
from .request import Flow, Request
from .track import Track

# A request leaves when all of it is solved; until then finished frames only make room.
_BULK = Emissions(first_blocks=64, chunk_blocks=64, look_ahead=None, is_live=False)
# What is prepared of a request that is longer than any batch: codes in one piece, and blocks that wait.
_PIECE_CODES, _MAX_WAITING_BLOCKS = 6000, 500


@dataclass(frozen=True)
class Rendering:
    """mel [T, M] and samples [L] of one request, on the engine's device."""

    mel: Tensor
    samples: Tensor
    timings: Timings


def render(engine: Engine, requests: Sequence[Request], flow: Flow) -> list[Rendering]:
    """Renders requests in packed batches; each result equals its lone run within rounding."""
    renderings: list[Rendering] = []
    for batch in _batches(engine, requests):
        renderings += _render_batch(engine, batch, flow)
    return renderings


class _Job:
    """A request and its track; codes are handed on piece by piece."""

    def __init__(self, engine: Engine, request: Request, flow: Flow) -> None:
        self.engine, self.request = engine, request
        self.track = engine.track(request.voice, flow, request.guidance, _BULK)
        self._num_fed = 0
        self.feed()
        engine.add_track(self.track)

    def feed(self) -> None:
        """Hands on the next codes, unless enough of them wait."""
        dit, start = self.engine.config.dit, self._num_fed
        waiting = start * dit.repeats // dit.block_size - self.track.emitted_blocks
        if start == len(self.request.codes) or waiting > _MAX_WAITING_BLOCKS:
            return
        piece = self.request.codes.values[start : start + _PIECE_CODES]
        self._num_fed += len(piece)
        noise = self.request.noise[dit.repeats * start : dit.repeats * self._num_fed]
        self.engine.add_codes(self.track, piece, noise)
        if self._num_fed == len(self.request.codes):
            self.engine.close(self.track)


@torch.inference_mode()
def _render_batch(engine: Engine, requests: Sequence[Request], flow: Flow) -> list[Rendering]:
    started_s = engine.now_s()
    jobs: list[_Job] = []
    try:
        for request in requests:
            jobs.append(_Job(engine, request, flow))
        tracks, conditioned_s = [job.track for job in jobs], engine.now_s()
        while any(not track.is_done for track in tracks):
            check_sound(*tracks)
            for job in jobs:
                job.feed()
            engine.step()
    finally:
        for job in jobs:
            engine.remove(job.track)
    engine.settle()
    mels = [torch.cat([emission.mel for emission in track.finished]) for track in tracks]
    solved_s, queue_s = engine.now_s(), _queue_s(tracks, conditioned_s)
    waves = engine.vocode(mels)
    timings = Timings(
        queue_s=queue_s,
        condition_s=conditioned_s - started_s,
        flow_s=solved_s - conditioned_s - queue_s,
        vocoder_s=engine.now_s() - solved_s,
        batch_audio_s=sum(map(len, waves)) / engine.config.sample_rate,
        batch_requests=len(requests),
    )
    return [Rendering(mel, wave, timings) for mel, wave in zip(mels, waves, strict=True)]


def _queue_s(tracks: Sequence[Track], added_s: float) -> float:
    began = [track.usage.first_batch_s for track in tracks if track.usage.first_batch_s is not None]
    return max(0.0, min(began, default=added_s) - added_s)


def _batches(engine: Engine, requests: Sequence[Request]) -> Iterator[list[Request]]:
    """Requests that are under way together: what waits between evaluations is bounded as a batch is."""
    batch: list[Request] = []
    frames, most = 0, engine.scheduler.max_blocks * engine.config.dit.block_size
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
