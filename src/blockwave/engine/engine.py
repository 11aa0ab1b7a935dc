# SPDX-License-Identifier: Apache-2.0
"""The offline engine: all blocks of a batch of requests, evaluation after evaluation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..config import Token2WavConfig
from ..mel.solver import integrate
from ..speech import Timings
from ..velocity import MIN_GUIDANCE, Condition, DiT, VoiceRows
from ..velocity.modulation import TimeGrid
from ..voice import Voice
from ..waveform import BigVGAN, vocode
from .precision import full_float32
from .request import Flow, Request

# Frames of all branches that are solved together: bounds the activations to about 0.4 GB at released size.
# A request that is longer goes alone.
MAX_BATCH_FRAMES = 8192
_KEPT_TIME_GRIDS = 8


@dataclass(frozen=True)
class Rendering:
    """mel [T, M] and samples [L] of one request, on the engine's device."""

    mel: Tensor
    samples: Tensor
    timings: Timings


class Engine:
    """Both models on one device.

    Args:
        dit, vocoder: loaded modules on one device.
        config: of the checkpoint.
    """

    def __init__(self, dit: DiT, vocoder: BigVGAN, config: Token2WavConfig) -> None:
        self.dit, self.vocoder, self.config = dit.eval(), vocoder.eval(), config
        self.device = dit.final.weight.device
        self.dtype = dit.final.weight.dtype  # of states and mels; matrix products may be narrower
        self._voices: WeakKeyDictionary[Voice, VoiceRows] = WeakKeyDictionary()
        self._time_grid = lru_cache(_KEPT_TIME_GRIDS)(self._make_time_grid)

    @torch.inference_mode()
    def render(self, requests: Sequence[Request], flow: Flow) -> list[Rendering]:
        """Renders requests in packed batches; each result equals its lone run within rounding."""
        renderings: list[Rendering] = []
        with full_float32():
            for batch in self._batches(requests):
                renderings += self._render_batch(batch, flow)
        return renderings

    def _render_batch(self, requests: Sequence[Request], flow: Flow) -> list[Rendering]:
        started_s = self._now_s()
        batch = self.dit.pack([self._condition(request) for request in requests])
        grid = self._time_grid(flow)
        noise = torch.cat([request.noise.to(self.device, self.dtype) for request in requests])
        conditioned_s = self._now_s()
        mel = integrate(lambda x, t: self.dit(x, batch, grid, grid.row(t)), noise, flow.points, flow.tableau)
        solved_s = self._now_s()
        mels = mel.split(batch.num_frames)
        waves = vocode(self.vocoder, mels)
        timings = Timings(
            condition_s=conditioned_s - started_s,
            flow_s=solved_s - conditioned_s,
            vocoder_s=self._now_s() - solved_s,
            batch_audio_s=sum(map(len, waves)) / self.config.sample_rate,
            batch_requests=len(requests),
        )
        return [Rendering(mel, wave, timings) for mel, wave in zip(mels, waves, strict=True)]

    def _condition(self, request: Request) -> Condition:
        codes = torch.from_numpy(request.codes.values).to(self.device)
        return self.dit.condition(codes, self._voice_rows(request.voice), request.guidance)

    def _voice_rows(self, voice: Voice) -> VoiceRows:
        if voice not in self._voices:
            arrays = (voice.xvector, voice.reference_mel)
            xvector, mel = (torch.from_numpy(array).to(self.device, self.dtype) for array in arrays)
            self._voices[voice] = self.dit.voice_rows(xvector, mel)
        return self._voices[voice]

    def _make_time_grid(self, flow: Flow) -> TimeGrid:
        return self.dit.time_grid(flow.times)

    def _batches(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        batch: list[Request] = []
        frames = 0
        for request in requests:
            branches = 1 if request.guidance < MIN_GUIDANCE else 2
            more = branches * len(request.noise)
            if batch and frames + more > MAX_BATCH_FRAMES:
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
