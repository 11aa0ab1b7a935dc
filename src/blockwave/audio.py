# SPDX-License-Identifier: Apache-2.0
"""Samples as bytes: 16 bits that clip and refuse NaN, WAV by the standard library, other formats by soundfile."""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from .errors import AudioError, MissingExtraError

_FULL_SCALE_16 = 32767
# libsndfile's Vorbis encoder puts a whole write on the stack (its issue tracker: crashes with long buffers).
_CHUNK_SAMPLES = 24_000


@dataclass(frozen=True)
class Format:
    """A way to store mono sound.

    Attributes:
        name: how it is asked for; also the suffix, with a dot before it.
        container, subtype: libsndfile's names; None where the standard library suffices.
        rates: sample rates that the encoder takes; empty for any.
    """

    name: str
    container: str | None = None
    subtype: str | None = None
    rates: tuple[int, ...] = ()


# Rates: RFC 6716 section 2 (Opus); ISO 11172-3 and 13818-3 with the usual 2.5 extension (MP3).
_OPUS_RATES = (8000, 12000, 16000, 24000, 48000)
_MP3_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
FORMATS = {
    format.name: format
    for format in (
        Format("wav"),
        Format("pcm"),  # little-endian 16-bit samples, nothing else
        Format("flac", "FLAC", "PCM_16"),
        Format("ogg", "OGG", "VORBIS"),
        Format("opus", "OGG", "OPUS", _OPUS_RATES),
        Format("mp3", "MP3", "MPEG_LAYER_III", _MP3_RATES),
    )
}


def choose_format(path: str | PurePath, asked: str | None = None) -> Format:
    """The format that a file is written in: the one asked for, else that of its suffix.

    Raises:
        AudioError: an unknown name or suffix, or a suffix that promises another format than the one asked for.
    """
    path = PurePath(path)
    suffix, known = path.suffix.lower().removeprefix("."), ", ".join(FORMATS)
    if asked is None:
        if suffix not in FORMATS:
            raise AudioError(f"{path}: got suffix {path.suffix!r}, expected one of .{known.replace(', ', ', .')}")
        return FORMATS[suffix]
    if asked not in FORMATS:
        raise AudioError(f"format: got {asked!r}, expected one of {known}")
    if suffix in FORMATS and suffix != asked:
        raise AudioError(f"{path}: got format {asked!r} for a name that ends in .{suffix}, expected them to agree")
    return FORMATS[asked]


def check_samples(samples: np.ndarray) -> None:
    """Raises AudioError unless ``samples`` is a non-empty, finite float [L]."""
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise AudioError(f"samples: got {samples.dtype} {list(samples.shape)}, expected one channel of floats [L]")
    if samples.size == 0:
        raise AudioError("samples: got none, expected at least one; there is no sound to write")
    finite = np.isfinite(samples)
    if not finite.all():
        where = int(np.argmin(finite))
        raise AudioError(
            f"samples: got {samples[where]} at sample {where} ({int((~finite).sum())} such in all), expected finite "
            "numbers; check the checkpoint's weights, the voice and the noise"
        )


def check_mel(mel: np.ndarray) -> None:
    """Raises AudioError unless ``mel`` [T, M] is finite; the vocoder clamps, so its sound may not show it."""
    finite = np.isfinite(mel).all(-1)
    if not finite.all():
        raise AudioError(
            f"mel: got NaN or infinity in {int((~finite).sum())} of {len(mel)} frames, expected finite numbers; check "
            "guidance, the checkpoint's weights, the voice and the noise"
        )


def is_silent(samples: np.ndarray) -> bool:
    """Whether nothing of the sound is left in 16 bits."""
    return not to_pcm16(samples).any()


def to_pcm16(samples: np.ndarray) -> np.ndarray:
    """Little-endian int16 [L] from float [L]: clips to [-1, 1], scales by 32767 and rounds; +1.0 never wraps."""
    check_samples(samples)
    scaled = np.clip(samples.astype(np.float64), -1.0, 1.0) * _FULL_SCALE_16
    return np.rint(scaled).astype("<i2")


def wav_bytes(samples: np.ndarray, sample_rate: int) -> bytes:
    """A mono 16-bit WAV file."""
    pcm = to_pcm16(samples)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(pcm.tobytes())
    return buffer.getvalue()


def check_encoder(format: Format, sample_rate: int) -> None:
    """Whether ``format`` can be written here at ``sample_rate`` Hz.

    Raises:
        MissingExtraError: soundfile is not installed.
        AudioError: its libsndfile lacks the format, or the format lacks the rate.
    """
    if format.container is None:
        return
    soundfile = _soundfile(format)
    if not soundfile.check_format(format.container, format.subtype):
        raise AudioError(
            f"format {format.name}: libsndfile {soundfile.__libsndfile_version__} cannot write {format.container} "
            f"{format.subtype}; expected 1.1 or newer, install a newer soundfile, or write wav"
        )
    if format.rates and sample_rate not in format.rates:
        raise AudioError(
            f"format {format.name}: got a sample rate of {sample_rate} Hz, expected one of "
            f"{', '.join(map(str, format.rates))}; write wav or flac"
        )


def encode(samples: np.ndarray, sample_rate: int, format: Format) -> bytes:
    """A whole file in ``format``.

    Args:
        samples: float [L], clipped to [-1, 1]. wav, pcm and flac hold 16 bits, the others are lossy.
        sample_rate: Hz.

    Raises:
        AudioError, MissingExtraError: samples that are not finite, or as :func:`check_encoder`.
    """
    if format.name == "pcm":
        return to_pcm16(samples).tobytes()
    if format.container is None:
        return wav_bytes(samples, sample_rate)
    check_encoder(format, sample_rate)
    check_samples(samples)
    values = to_pcm16(samples) if format.subtype == "PCM_16" else np.clip(samples, -1.0, 1.0).astype(np.float32)
    soundfile, buffer = _soundfile(format), io.BytesIO()
    try:
        with soundfile.SoundFile(buffer, "w", sample_rate, 1, format.subtype, format=format.container) as file:
            for start in range(0, len(values), _CHUNK_SAMPLES):
                file.write(values[start : start + _CHUNK_SAMPLES])
    except soundfile.SoundFileError as error:
        raise AudioError(f"format {format.name}: libsndfile failed ({error}); write wav") from None
    return buffer.getvalue()


def _soundfile(format: Format) -> Any:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: the package is there, the library libsndfile is not
        raise MissingExtraError(
            f"format {format.name}: needs soundfile, which is not installed (wav and pcm do not); "
            'run: pip install "blockwave[audio]"'
        ) from None
    return soundfile
