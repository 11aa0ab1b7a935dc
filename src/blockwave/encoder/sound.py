# SPDX-License-Identifier: Apache-2.0
"""Sound from a file: one channel of finite floats with its rate. The door to soundfile's readers and to soxr."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import AudioError, MissingExtraError

_RATES_HZ = (4_000, 768_000)


@dataclass(frozen=True, eq=False)
class Sound:
    """samples: float32 [L], channels averaged; rate: Hz."""

    samples: np.ndarray
    rate: int

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.rate


def read_sound(source: str | os.PathLike[str] | bytes) -> Sound:
    """Reads any format that soundfile reads, from a path or from a file's bytes; channels are averaged.

    Raises:
        AudioError: missing, empty, no sound file, samples that are not finite, or an absurd rate.
        MissingExtraError: soundfile is not installed.
    """
    try:
        import soundfile
    except ImportError:
        raise MissingExtraError(
            'reading sound needs soundfile; install it with pip install "blockwave[audio]"'
        ) from None
    name = "sound" if isinstance(source, bytes) else str(source)
    if not isinstance(source, bytes) and not Path(source).is_file():
        kind = "a folder" if Path(source).is_dir() else "no such file"
        raise AudioError(f"{name}: got {kind}, expected a sound file")
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        samples, rate = soundfile.read(file, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError) as error:
        reason = str(error).strip().rstrip(".").rsplit(": ", 1)[-1]
        raise AudioError(
            f"{name}: not a sound that can be read ({reason}); expected wav, flac, ogg, opus or mp3"
        ) from None
    if len(samples) == 0:
        raise AudioError(f"{name}: got no samples, expected sound")
    if not np.isfinite(samples).all():
        raise AudioError(f"{name}: got NaN or infinity among the samples, expected finite numbers")
    if not _RATES_HZ[0] <= rate <= _RATES_HZ[1]:
        raise AudioError(f"{name}: got a rate of {rate} Hz, expected {_RATES_HZ[0]} to {_RATES_HZ[1]} Hz")
    return Sound(samples.mean(axis=1), int(rate))


def resample(samples: np.ndarray, rate: int, wanted_rate: int) -> np.ndarray:
    """float32 [L] at another rate, band-limited by soxr.

    Raises:
        MissingExtraError: soxr is not installed.
    """
    if rate == wanted_rate:
        return samples
    try:
        import soxr
    except ImportError:
        raise MissingExtraError('resampling needs soxr; install it with pip install "blockwave[audio]"') from None
    return soxr.resample(samples, rate, wanted_rate).astype(np.float32)
