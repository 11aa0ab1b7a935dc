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


@torch.inference_mode()
def _render_batch(engine: Engine, requests: Sequence[Request], flow: Flow) -> list[Rendering]:
    started_s = engine.now_s()
    tracks = [engine.track(request.voice, flow, request.guidance, _BULK) for request in requests]
    pairs = list(zip(tracks, requests, strict=True))
    for pair in pairs:
        _feed(engine, *pair)
    conditioned_s = engine.now_s()
    try:
        for track in tracks:
            engine.add_track(track)
        while any(not track.is_done for track in tracks):
            check_sound(*tracks)
            for pair in pairs:
                _feed(engine, *pair)
            engine.step()
    finally:
        for track in tracks:
            engine.remove_track(track)
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


def _feed(engine: Engine, track: Track, request: Request) -> None:
    """Hands on the next codes of a request, unless enough of it waits."""
    if track.is_closed or track.num_blocks - track.emitted_blocks > _MAX_WAITING_BLOCKS:
        return
    start, repeats = track.num_codes, engine.config.dit.repeats
    piece = request.codes.values[start : start + _PIECE_CODES]
    engine.add_codes(track, piece, request.noise[repeats * start : repeats * (start + len(piece))])
    if track.num_codes == len(request.codes):
        engine.close(track)


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
