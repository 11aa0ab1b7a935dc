# SPDX-License-Identifier: Apache-2.0
"""Samples as files: clipping, refusals, and what each format keeps of the sound."""

from __future__ import annotations

import io
import re
import sys
import wave

import numpy as np
import pytest
import soundfile

from blockwave.audio import FORMATS, check_encoder, choose_format, encode, is_silent, to_pcm16, wav_bytes
from blockwave.errors import AudioError, MissingExtraError
from blockwave.speech import Speech, Timings

RATE = 24_000


def chirp(length: int) -> np.ndarray:
    """From 200 Hz up, 1400 Hz further every second; amplitude 0.3."""
    t = np.arange(length) / RATE
    return (0.3 * np.sin(2 * np.pi * (200 * t + 700 * t * t))).astype(np.float32)


def read(data: bytes) -> np.ndarray:
    sound, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert rate == RATE
    return sound


def test_full_scale_clips_and_never_wraps():
    given = np.array([0.0, 1.0, -1.0, 1.5, -7.0, 0.5 / 32767, 0.49 / 32767, 0.99999], np.float32)
    np.testing.assert_array_equal(to_pcm16(given), [0, 32767, -32767, 32767, -32767, 0, 0, 32767])
    assert to_pcm16(given).dtype == "<i2"


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_full_scale_in_every_format(format):
    loud = 20 * chirp(4800)  # almost a square wave
    data = encode(loud, RATE, format)
    values = np.frombuffer(data, "<i2") / 32768 if format.name == "pcm" else read(data)
    # Lossy encoders ring at the edges of the square; had samples wrapped, its halves would be of the other sign.
    best = max(np.corrcoef(np.clip(loud[1:-1], -1, 1), values[1 + lag : 4799 + lag])[0, 1] for lag in (-1, 0, 1))
    assert best > 0.95


@pytest.mark.parametrize("length", [1, 480, 481, 5760, 24_000, 24_001, 57_120])
@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_length_and_sound(format, length):
    given = chirp(length)
    data = encode(given, RATE, format)
    values = np.frombuffer(data, "<i2") / 32768 if format.name == "pcm" else read(data)
    assert len(values) == length
    if format.name in ("wav", "pcm", "flac"):
        np.testing.assert_array_equal(np.rint(values * 32768), to_pcm16(given))
    elif length >= 24_000:
        # Lossy but the same sound, at the same place to one sample.
        best = max(np.corrcoef(given[1:-1], values[1 + lag : length - 1 + lag])[0, 1] for lag in (-1, 0, 1))
        assert best > 0.99


def test_wav_header():
    with wave.open(io.BytesIO(wav_bytes(chirp(481), RATE))) as file:
        assert file.getparams()[:4] == (1, 2, RATE, 481)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(0, np.float32), "samples: got none, expected at least one; there is no sound to write"),
        (np.zeros((1, 5), np.float32), "samples: got float32 [1, 5], expected one channel of floats [L]"),
        (np.zeros(5, np.int16), "samples: got int16 [5], expected one channel of floats [L]"),
        (
            np.array([0, np.nan, np.inf], np.float32),
            "samples: got nan at sample 1 (2 such in all), expected finite numbers; check the checkpoint's weights, "
            "the voice and the noise",
        ),
    ],
)
@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_what_is_no_sound_becomes_no_file(format, samples, message):
    with pytest.raises(AudioError, match=re.escape(message)):
        encode(samples, RATE, format)


def test_silence():
    assert is_silent(np.zeros(5, np.float32))
    assert is_silent(np.full(5, 0.49 / 32767, np.float32))
    assert not is_silent(np.array([0, 0.51 / 32767], np.float32))


def test_choose_format():
    assert {name: choose_format(f"A.{name.upper()}").name for name in FORMATS} == {name: name for name in FORMATS}
    assert choose_format("sound", "flac").name == choose_format("sound.xyz", "flac").name == "flac"
    for path, asked, message in (
        ("a.xyz", None, "a.xyz: got suffix '.xyz', expected one of .wav, .pcm, .flac, .ogg, .opus, .mp3"),
        ("a.wav", "aac", "format: got 'aac', expected one of wav, pcm, flac, ogg, opus, mp3"),
        ("a.wav", "mp3", "a.wav: got format 'mp3' for a name that ends in .wav, expected them to agree"),
    ):
        with pytest.raises(AudioError, match=f"^{re.escape(message)}$"):
            choose_format(path, asked)


def test_rates_that_a_format_lacks():
    check_encoder(FORMATS["flac"], 12_345)
    for name, rate in (("opus", 22_050), ("mp3", 96_000)):
        with pytest.raises(AudioError, match=f"^format {name}: got a sample rate of {rate} Hz, expected one of 8000, "):
            check_encoder(FORMATS[name], rate)


def test_only_other_formats_need_soundfile(monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    for name, format in FORMATS.items():
        if name in ("wav", "pcm"):
            assert encode(chirp(5), RATE, format)
            continue
        message = (
            f"format {name}: needs soundfile, which is not installed (wav and pcm do not); "
            'run: pip install "blockwave[audio]"'
        )
        with pytest.raises(MissingExtraError, match=re.escape(message)):
            encode(chirp(5), RATE, format)


@pytest.fixture
def speech():
    timings = Timings(0.0, 0.1, 0.2, 0.3, 0.02, 1)
    return Speech(chirp(480), RATE, np.zeros((2, 80), np.float32), 0, "v", timings, 1, True, 0)


def test_save(speech, tmp_path):
    for name in FORMATS:
        path = speech.save(tmp_path / f"new/a.{name}")
        assert path.read_bytes()
        other = speech.save(tmp_path / f"new/{name}.sound", name)
        if name not in ("ogg", "opus"):  # these streams have a random serial number
            assert other.read_bytes() == path.read_bytes()
    assert len(list((tmp_path / "new").iterdir())) == 2 * len(FORMATS)


def test_save_where_nothing_can_be_written(speech, tmp_path):
    (tmp_path / "folder.wav").mkdir()
    (tmp_path / "file").touch()
    for path, reason in (("folder.wav", "Is a directory"), ("file/a.wav", "File exists")):
        with pytest.raises(AudioError, match=rf"{path}: cannot be written \({reason}\); check the folder"):
            speech.save(tmp_path / path)
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["file", "folder.wav"]
