# SPDX-License-Identifier: Apache-2.0
"""Lines of known power in noise of known density, and a voice that glides."""

from __future__ import annotations

import numpy as np
import pytest

from blockwave import OptionError
from blockwave.quality.lines import frame_lines, voiced_windows

RATE = 24_000
TIME = np.arange(6 * RATE) / RATE
NOISE = np.random.default_rng(7).normal(size=len(TIME))  # density 1 / (RATE / 2) per Hz, white


def tones(hertz: np.ndarray, power: float) -> np.ndarray:
    """A sinusoid of the given power at every frequency, phases spread so that no pulse arises (Schroeder, 1970)."""
    phases = np.pi * np.arange(len(hertz)) ** 2 / len(hertz)
    return sum(np.sqrt(2 * power) * np.cos(2 * np.pi * f * TIME + p) for f, p in zip(hertz, phases, strict=True))


def glide(low_hz: float, high_hz: float) -> np.ndarray:
    """All harmonics below 10 kHz of a pitch that moves between two frequencies, once in two seconds."""
    middle, depth = (low_hz + high_hz) / 2, (high_hz - low_hz) / 2
    phase = 2 * np.pi * (middle * TIME - depth / np.pi * np.cos(np.pi * TIME))
    return sum(np.cos(k * phase) for k in range(1, int(10_000 / high_hz)))


def test_noise_has_none():
    # 59 windows, half overlapped, 59 multiples of 3 bins: about 4000 independent values, standard error 0.07 dB.
    assert frame_lines(NOISE, RATE) == pytest.approx(0, abs=0.25)


@pytest.mark.parametrize("frame_rate", [100.0, 50.0])
@pytest.mark.parametrize("over_noise", [1.0, 30.0, 1000.0])
def test_lines_of_known_power(frame_rate, over_noise):
    """The three bins of a line hold its power and the noise of three bins."""
    bin_hz, density = frame_rate / 20, 2 / RATE
    wave = NOISE + tones(np.arange(1, int(9000 / frame_rate)) * frame_rate, over_noise * density * 3 * bin_hz)
    # Hann's noise bandwidth is 1.5 bins and a line on a bin fills three with 1.5 times its peak: the factors cancel.
    assert frame_lines(wave, RATE, frame_rate) == pytest.approx(10 * np.log10(1 + over_noise), abs=0.3)


def test_level_and_colour_do_not_count():
    wave = NOISE + tones(np.arange(10, 90) * 100.0, 1e-3)
    figure = frame_lines(wave, RATE)
    assert frame_lines(np.convolve(1e-3 * wave, [1, 0.9]), RATE) == pytest.approx(figure, abs=0.1)
    louder_once_without_lines = np.where(TIME < 1, 1000 * NOISE, wave)
    assert frame_lines(louder_once_without_lines, RATE) == pytest.approx(figure, abs=1)


def test_a_loud_tone_elsewhere_does_not_leak():
    wave = 1e-3 * (NOISE + tones(np.arange(10, 90) * 100.0, 1e-3))
    assert frame_lines(wave + tones(np.array([333.0]), 1), RATE) == pytest.approx(frame_lines(wave, RATE), abs=0.1)


def test_tones_between_the_multiples_are_none():
    assert frame_lines(NOISE + tones(np.arange(10, 90) * 100.0 + 50, 1e-2), RATE) < -3


def test_a_gliding_voice_has_none_until_it_repeats_its_frames():
    voice = glide(150, 260) + 0.1 * NOISE
    assert abs(frame_lines(voice, RATE)) < 1.5
    frames = voice[: len(voice) // 2400 * 2400].reshape(-1, 10, 240)
    held = np.repeat(frames[:, :1], 10, axis=1).reshape(-1)  # the first frame of every ten, ten times
    assert frame_lines(held, RATE) > 6


def test_only_the_windows_asked_for_count():
    wave = NOISE.copy()
    half = len(wave) // 2
    wave[:half] += tones(np.arange(10, 90) * 100.0, 0.1)[:half]
    windows = np.arange(2 * len(wave) // 4800 - 1) * 2400
    first, second = windows + 4800 <= half, windows >= half
    assert frame_lines(wave, RATE, windows=first) > 15
    assert frame_lines(wave, RATE, windows=second) == pytest.approx(0, abs=0.2)


def test_voiced_windows():
    third = len(TIME) // 3 // 2400 * 2400
    wave = np.concatenate((glide(150, 260)[:third], 3 * NOISE[:third], np.zeros(third)))
    voiced = voiced_windows(wave, RATE)
    starts = np.arange(len(voiced)) * 2400
    assert voiced[starts + 4800 <= third].all()
    assert not voiced[starts >= third].any()


def test_silence_is_not_voiced_and_has_no_figure():
    silence = np.zeros(RATE)
    assert not voiced_windows(silence, RATE).any()
    with pytest.raises(OptionError, match="windows: got none with sound, expected at least one"):
        frame_lines(silence, RATE)


def test_what_cannot_be_measured_is_said():
    with pytest.raises(OptionError, match=r"wave: got shape \[100\], expected \[L\] with L >= 4800"):
        frame_lines(np.zeros(100), RATE)
    with pytest.raises(OptionError, match=r"wave: got shape \[2, 9600\]"):
        voiced_windows(np.zeros((2, 9600)), RATE)
    with pytest.raises(OptionError, match="frame rate: got 93 Hz at 24000"):
        frame_lines(NOISE, RATE, 93)
    with pytest.raises(OptionError, match="frame rate: got 0 Hz"):
        frame_lines(NOISE, RATE, 0)
    with pytest.raises(OptionError, match="band: got 2010 to 2140 Hz"):
        frame_lines(NOISE, RATE, band=(2010, 2140))
    with pytest.raises(OptionError, match=r"band: got 11980 to 20000 Hz, .* below 12000 Hz"):
        frame_lines(NOISE, RATE, band=(11_980, 20_000))
    with pytest.raises(OptionError, match=r"windows: got int64 \[3\], expected bool \[59\]"):
        frame_lines(NOISE, RATE, windows=np.arange(3))
    with pytest.raises(OptionError, match="windows: got none with sound"):
        frame_lines(NOISE, RATE, windows=np.zeros(59, bool))
