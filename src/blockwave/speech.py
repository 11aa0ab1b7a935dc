# SPDX-License-Identifier: Apache-2.0
"""The result of a request: samples with their rate, and everything needed to make them again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .audio import choose_format, encode
from .errors import AudioError
from .voice import write_atomically


@dataclass(frozen=True)
class Timings:
    """Wall time of the batch that a request was part of, in seconds.

    Attributes:
        queue_s: waiting until the first evaluation began, no computing of its own.
        condition_s: voice encoder and everything that is constant over the solve.
        flow_s: all evaluations of the velocity.
        vocoder_s: mel to samples.
        batch_audio_s: sound that the batch made, all its requests together.
        batch_requests: requests in the batch.
    """

    queue_s: float
    condition_s: float
    flow_s: float
    vocoder_s: float
    batch_audio_s: float
    batch_requests: int

    @property
    def total_s(self) -> float:
        return self.condition_s + self.flow_s + self.vocoder_s

    @property
    def rtf(self) -> float:
        """Real-time factor: compute time / audio time of the batch; below 1 is faster than the sound lasts."""
        return self.total_s / self.batch_audio_s


@dataclass(frozen=True)
class StreamTimings:
    """Wall time of a live stream so far, in seconds.

    Attributes:
        queue_s: from its first codes until the first batch with blocks of it began.
        flow_s: batches of evaluations that it was part of; others share them.
        vocoder_s: batches of the vocoder that it was part of.
        first_audio_s: from its first codes until its first samples were there; None before.
        audio_s: sound made.
    """

    queue_s: float
    flow_s: float
    vocoder_s: float
    first_audio_s: float | None
    audio_s: float


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


@dataclass(frozen=True, eq=False)
class Speech:
    """One rendered request.

    Attributes:
        samples: float32 [L] in [-1, 1], L = 480 samples for every code at the released rates.
        sample_rate: Hz.
        mel: float32 [T, M], natural-log mel.
        seed: the seed of the noise, or None where the noise itself was given.
        voice: name of the voice that spoke.
        timings: wall times of the batch.
        num_codes: codes that were rendered.
        ended: the codes carried an end id; False where the talker was cut short.
        num_codes_cut: codes that the maximum duration removed.
    """

    samples: np.ndarray
    sample_rate: int
    mel: np.ndarray
    seed: int | None
    voice: str
    timings: Timings
    num_codes: int
    ended: bool
    num_codes_cut: int

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.sample_rate

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Writes a mono sound file (beside, then renamed) and returns its path.

        Args:
            format: wav, flac, ogg (Vorbis), opus, mp3 or pcm (raw 16-bit samples); None: what the suffix says.

        Raises:
            AudioError: an unknown format, samples that are not finite, or a path that cannot be written.
            MissingExtraError: a format other than wav and pcm without soundfile installed.
        """
        path = Path(path)
        data = encode(self.samples, self.sample_rate, choose_format(path, format))
        try:
            write_atomically(path, data)
        except OSError as error:
            raise AudioError(
                f"{path}: cannot be written ({error.strerror}); check the folder, its permissions and the free space"
            ) from None
        return path
