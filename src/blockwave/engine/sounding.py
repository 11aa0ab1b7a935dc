# SPDX-License-Identifier: Apache-2.0
"""From the frames of live streams to their sound, many streams in one batch of the vocoder."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event

import torch
from torch import Tensor

from ..audio import check_mel, check_samples
from ..errors import AudioError, BlockwaveError
from ..speech import SpeechChunk, StreamTimings
from ..waveform import StreamingVocoder, StreamState
from .emissions import Emission
from .track import Track

# Frames that one stream, and all streams of one batch, put through the vocoder at once: 0.4 MB each at released size.
MAX_PIECE_FRAMES = 480
MAX_BATCH_FRAMES = 1024


class Sounding:
    """The vocoder's end of one live stream: emissions of its track in, chunks of sound out.

    An emission may be shorter than what the vocoder looks ahead (24 frames against 34 at released size). Where the
    first one would be silent for that reason, the frames that its look-ahead has already solved stand in for those that
    come: its sound is there at once, and is off by what those frames are still to change. Nothing is heard twice.

    Attributes:
        track: where the frames come from.
        ready: chunks that have not been read.
        num_samples: given so far, read or not.
        fault: what was wrong with the sound, for whoever reads.
        is_over: no more chunks will come.
        is_back: None, or while the vocoder is at it what is set when it is done; what it made is given after that.
    """

    def __init__(self, track: Track, vocoder: StreamingVocoder, sample_rate: int) -> None:
        self.track, self.sample_rate = track, sample_rate
        self.ready: deque[SpeechChunk] = deque()
        self.fault: BlockwaveError | None = None
        self.is_over = False
        self.is_back: Event | None = None
        self._state = vocoder.start()
        self.num_samples = self._num_early = 0
        self._vocoder_s = 0.0
        self._first_audio_at_s: float | None = None

    @property
    def waits(self) -> bool:
        """Whether there is something to make sound of, and nobody does."""
        if self.is_over or self.is_back is not None or self.track.is_broken:
            return False
        return bool(self.track.finished) or self.track.is_done

    @property
    def timings(self) -> StreamTimings:
        """So far."""
        usage, first = self.track.usage, self._first_audio_at_s
        return StreamTimings(
            queue_s=usage.queue_s,
            flow_s=usage.flow_s,
            vocoder_s=self._vocoder_s,
            first_audio_s=None if first is None or usage.first_codes_s is None else first - usage.first_codes_s,
            audio_s=self.num_samples / self.sample_rate,
        )

    def take(self, parts: list[Part], none: Tensor) -> None:
        """Adds what the vocoder has to do next; ``none`` is an empty mel. To be given back, interrupted or not."""
        finished = self.track.finished
        part = Part(self, Event(), self._state, none, none, False)
        parts.append(part)
        self.is_back = part.is_back
        if finished:
            emission = finished.popleft()
            part.mel, rest = emission.mel[:MAX_PIECE_FRAMES], emission.mel[MAX_PIECE_FRAMES:]
            if len(rest):
                finished.appendleft(Emission(rest, emission.beyond))
            else:
                part.beyond = emission.beyond
        part.final = self.track.is_done and not finished

    def give(self, part: Part, started_s: float, ended_s: float) -> None:
        """Takes in what the vocoder made of :meth:`take`, if anybody still wants it."""
        self.is_back = None
        if part.samples is None and not self.track.is_broken:  # an interrupt came in between: the frames are lost
            self.track.failure = InterruptedError("interrupted")
        if self.is_over or self.track.is_broken or part.samples is None:
            return
        self._state, self.is_over = part.state, part.state.finished
        said = min(self._num_early, len(part.samples))
        self._num_early -= said
        new = part.samples[said:]
        if part.early is not None:
            new, self._num_early = part.early, len(part.early)
        wave, mel = new.numpy(), part.mel.numpy()
        try:
            check_mel(mel)
            if len(wave):
                check_samples(wave)
        except AudioError as error:
            self.fault, self.is_over = error, True
            return
        if len(wave) or len(mel):
            self.ready.append(SpeechChunk(wave, self.sample_rate, self.num_samples, mel))
        self.num_samples += len(wave)
        self._vocoder_s += ended_s - started_s
        if self.num_samples and self._first_audio_at_s is None:
            self._first_audio_at_s = ended_s

    def let_go(self) -> None:
        """No more sound is made; what is ready may be read."""
        self.is_over, self._state = True, StreamState(finished=True)
        self.track.finished.clear()


@dataclass
class Part:
    """One stream's share of a batch of the vocoder.

    Attributes:
        is_back: to be set when nothing more is done with it.
        state, mel: its state before, and its next frames [T, M].
        beyond: frames [T', M] that its look-ahead has already solved.
        final: the sound ends with these frames.
        samples: made of them, None until then; ``state`` is the one after, and ``mel`` is on the host as they are.
        early: samples that stand in for those that come, see :class:`Sounding`; they will be made again.
    """

    sounding: Sounding
    is_back: Event
    state: StreamState
    mel: Tensor
    beyond: Tensor
    final: bool
    samples: Tensor | None = None
    early: Tensor | None = None


def fitting(soundings: Sequence[Sounding]) -> list[Sounding]:
    """The first of them that go through the vocoder together."""
    chosen, frames = [], 0
    for sounding in soundings:
        finished = sounding.track.finished
        frames += min(len(finished[0].mel), MAX_PIECE_FRAMES) if finished else 0
        if chosen and frames > MAX_BATCH_FRAMES:
            break
        chosen.append(sounding)
    return chosen


def make_sound(parts: Sequence[Part], vocoder: StreamingVocoder) -> None:
    """Makes the sound of every part, in one batch where their shapes allow. Touches nothing but the parts."""
    made = vocoder.push_many([(part.state, part.mel, part.final) for part in parts])
    silent = [
        (part, state)
        for part, (samples, state) in zip(parts, made, strict=True)
        if part.sounding.num_samples == len(samples) == 0 and len(part.beyond)
    ]
    early = vocoder.push_many([(state, part.beyond, False) for part, state in silent])
    # No more than the emission's own frames: what lies beyond is still to be solved again, with more in sight.
    rate = vocoder.model.config.samples_per_frame
    for (part, _), (samples, _) in zip(silent, early, strict=True):
        part.early = samples[: len(part.mel) * rate].to("cpu", torch.float32)
    for part, (samples, part.state) in zip(parts, made, strict=True):
        # Copied here, where nobody waits for it.
        part.samples, part.mel = (x.to("cpu", torch.float32) for x in (samples, part.mel))
