# SPDX-License-Identifier: Apache-2.0
"""From the frames of live streams to their sound, many streams in one batch of the vocoder."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

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
    """

    def __init__(self, track: Track, vocoder: StreamingVocoder, sample_rate: int) -> None:
        self.track, self.sample_rate = track, sample_rate
        self.ready: deque[SpeechChunk] = deque()
        self.fault: BlockwaveError | None = None
        self.is_over = False
        self._state = vocoder.start()
        self.num_samples = self._num_early = 0
        self._vocoder_s = 0.0
        self._first_audio_at_s: float | None = None

    @property
    def waits(self) -> bool:
        """Whether there is something to make sound of."""
        return not self.is_over and not self.track.is_broken and (bool(self.track.finished) or self.track.is_done)

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

    def take(self, none: Tensor) -> tuple[StreamState, Emission, bool]:
        """The state, the next frames, and whether they are the last; ``none`` is an empty mel."""
        finished = self.track.finished
        emission = finished.popleft() if finished else Emission(none, none)
        head, rest = emission.mel[:MAX_PIECE_FRAMES], emission.mel[MAX_PIECE_FRAMES:]
        if len(rest):
            finished.appendleft(Emission(rest, emission.beyond))
            emission = Emission(head, none)
        return self._state, emission, self.track.is_done and not finished

    def wants_early(self, samples: Tensor, emission: Emission) -> bool:
        """Whether the emission would leave the stream without a sound so far."""
        return self.num_samples == 0 and len(samples) == 0 and len(emission.beyond) > 0

    def give(self, samples: Tensor, state: StreamState, emission: Emission, early: Tensor | None) -> None:
        """Takes in what the vocoder made of :meth:`take`; ``early`` are samples that it will make again."""
        self._state, self.is_over = state, state.finished
        said = min(self._num_early, len(samples))
        self._num_early -= said
        new = samples[said:]
        if early is not None:
            new, self._num_early = early, len(early)
        wave, mel = (x.to("cpu", torch.float32).numpy() for x in (new, emission.mel))
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

    def let_go(self) -> None:
        """No more sound is made; what is ready may be read."""
        self.is_over, self._state = True, StreamState(finished=True)
        self.track.finished.clear()

    def ran(self, started_s: float, ended_s: float) -> None:
        """One batch of the vocoder with frames of the stream."""
        self._vocoder_s += ended_s - started_s
        if self.num_samples and self._first_audio_at_s is None:
            self._first_audio_at_s = ended_s


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


@torch.inference_mode()
def sound(vocoder: StreamingVocoder, soundings: Sequence[Sounding]) -> None:
    """Makes the next sound of every stream, in one batch where their shapes allow."""
    started_s = time.perf_counter()
    none = vocoder.model.conv_pre.weight.new_empty(0, vocoder.model.config.mel_dim)
    taken = [sounding.take(none) for sounding in soundings]
    made = vocoder.push_many([(state, emission.mel, final) for state, emission, final in taken])
    wanting = [
        i
        for i, (sounding, (samples, _), (_, emission, _)) in enumerate(zip(soundings, made, taken, strict=True))
        if sounding.wants_early(samples, emission)
    ]
    early = vocoder.push_many([(made[i][1], taken[i][1].beyond, False) for i in wanting])
    # No more than the emission's own frames: what lies beyond is still to be solved again, with more in sight.
    rate = vocoder.model.config.samples_per_frame
    early_of = {i: said[: len(taken[i][1].mel) * rate] for i, (said, _) in zip(wanting, early, strict=True)}
    for i, (sounding, (samples, state), (_, emission, _)) in enumerate(zip(soundings, made, taken, strict=True)):
        sounding.give(samples, state, emission, early_of.get(i))
    ended_s = time.perf_counter()
    for sounding in soundings:
        sounding.ran(started_s, ended_s)
