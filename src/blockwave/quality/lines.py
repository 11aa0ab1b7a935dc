# SPDX-License-Identifier: Apache-2.0
"""Energy on frame-rate lines: what a vocoder adds that repeats with its mel frames instead of with the pitch.

A convolutional vocoder that is handed a steady mel can do no better than repeat itself every frame: its spectrum stands
on multiples of the frame rate, which is heard as a buzz. The figure compares the power on these multiples with the
power between them, in windows of 20 frames: harmonics of a moving voice smear over both while the lines stay sharp.

It says whether there are lines, not whether there are harmonics: a hoarse voice has none of either.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import OptionError

FRAMES_PER_WINDOW = 20  # a line falls on every 20th bin, whose Hann lobe is that bin and its two neighbours
LINE_BINS, GAP_BINS = 1, 4  # on a line: at most 1 bin away; between lines: at least 4, clear of the lobe
PERIODIC_SHARE = 0.6  # of a piece's power that must repeat after one pitch period
VOICED_PIECES = 2 / 3  # of a window
VOICED_LOUDNESS = 1e-3  # of the loudest piece's power
PITCH_HZ = (80.0, 400.0)


def frame_lines(
    wave: np.ndarray,
    rate: int,
    frame_rate: float = 100.0,
    band: tuple[float, float] = (2000.0, 8000.0),
    windows: np.ndarray | None = None,
) -> float:
    """Power density on multiples of the frame rate over the density between them, in dB.

    Averages of periodograms (Welch, 1967, DOI 10.1109/TAU.1967.1161901) with a Hann window of 20 frames, half
    overlapped. The bins around each multiple, half a frame rate to either side, are divided by their mean first: every
    window and every multiple counts the same, however loud it is. 0 for noise; for lines of power P per multiple in
    noise of density N (power per Hz), 10 log10(1 + P / (3 N frame_rate / 20)). Speech whose pitch keeps near a multiple
    of the frame rate has some of its own: the source's figure is the reference.

    Args:
        wave: [L] samples, floating point.
        rate: samples per second; 20 frames must be an even number of samples.
        frame_rate: mel frames per second.
        band: in Hz; multiples whose neighbourhood lies inside count.
        windows: bool [W], which windows count, e.g. :func:`voiced_windows` of the source; None for all.

    Raises:
        OptionError: a wave shorter than one window, a frame rate that does not fit the sample rate, a band without a
            multiple, a mask of another length, no window with sound.
    """
    size = _window_size(rate, frame_rate)
    frames = _windows(wave, size)
    if windows is not None:
        if windows.shape != (len(frames),) or windows.dtype != bool:
            raise OptionError(
                f"windows: got {windows.dtype} {list(windows.shape)}, expected bool [{len(frames)}], one per window"
            )
        frames = frames[windows]
    half = FRAMES_PER_WINDOW // 2
    first = math.ceil(band[0] / frame_rate + 0.5)
    last = math.floor(min(band[1], rate / 2) / frame_rate - 0.5)
    if first > last:
        raise OptionError(
            f"band: got {band[0]:g} to {band[1]:g} Hz, expected it to hold a multiple of {frame_rate:g} Hz with half a "
            f"frame rate on either side, below {rate / 2:g} Hz"
        )
    power = np.abs(np.fft.rfft(frames * _hann(size))) ** 2
    cells = power[:, first * FRAMES_PER_WINDOW - half : last * FRAMES_PER_WINDOW + half].reshape(-1, FRAMES_PER_WINDOW)
    means = cells.mean(1)
    if not means.any():
        raise OptionError("windows: got none with sound, expected at least one; choose a louder or voiced stretch")
    cells = cells[means > 0] / means[means > 0, None]
    away = np.abs(np.arange(FRAMES_PER_WINDOW) - half)
    on, between = cells[:, away <= LINE_BINS].mean(), cells[:, away >= GAP_BINS].mean()
    return float(10 * np.log10(on / max(between, 1e-12)))


def voiced_windows(wave: np.ndarray, rate: int, frame_rate: float = 100.0) -> np.ndarray:
    """Which windows of :func:`frame_lines` are voiced: bool [W].

    A piece of 40 ms is voiced where it is louder than -30 dB of the loudest and repeats itself after a pitch period
    between 1/400 and 1/80 s: normalised autocorrelation above 0.6 below 1 kHz. A window is where two thirds of its
    pieces are, 20 ms apart.

    Raises:
        OptionError: as :func:`frame_lines`.
    """
    windows = _windows(_below_1_khz(wave, rate), _window_size(rate, frame_rate))
    length, hop = round(0.04 * rate), round(0.02 * rate)
    taper = _hann(length)
    pieces = np.lib.stride_tricks.sliding_window_view(windows, length, axis=1)[:, ::hop] * taper
    lags = slice(math.ceil(rate / PITCH_HZ[1]), math.floor(rate / PITCH_HZ[0]) + 1)
    # The taper's own autocorrelation falls with the lag and is divided out (Boersma, 1993, equation 9).
    own = _autocorrelation(taper)
    correlation = _autocorrelation(pieces)
    power = correlation[..., 0]
    peak = (correlation[..., lags] / (own[lags] / own[0])).max(-1)
    voiced = (peak > PERIODIC_SHARE * power) & (power > VOICED_LOUDNESS * power.max(initial=0.0))
    return voiced.mean(1) >= VOICED_PIECES


def _window_size(rate: int, frame_rate: float) -> int:
    size = FRAMES_PER_WINDOW * rate / frame_rate if frame_rate > 0 else math.nan
    if size % 2 != 0:  # also for nan
        raise OptionError(
            f"frame rate: got {frame_rate:g} Hz at {rate} samples per second, expected {FRAMES_PER_WINDOW} frames to "
            "be an even number of samples; resample first"
        )
    return int(size)


def _windows(wave: np.ndarray, size: int) -> np.ndarray:
    if wave.ndim != 1 or len(wave) < size:
        raise OptionError(f"wave: got shape {list(wave.shape)}, expected [L] with L >= {size}, one window")
    return np.lib.stride_tricks.sliding_window_view(wave.astype(np.float64), size)[:: size // 2]


def _hann(size: int) -> np.ndarray:
    return np.hanning(size + 1)[:-1]  # periodic: three bins for a line on a bin, nothing elsewhere


def _below_1_khz(wave: np.ndarray, rate: int) -> np.ndarray:
    spectrum = np.fft.rfft(wave.astype(np.float64))
    spectrum[..., np.fft.rfftfreq(wave.shape[-1], 1 / rate) > 1000] = 0
    return np.fft.irfft(spectrum, wave.shape[-1])


def _autocorrelation(pieces: np.ndarray) -> np.ndarray:
    length = pieces.shape[-1]
    return np.fft.irfft(np.abs(np.fft.rfft(pieces, 2 * length)) ** 2)[..., :length]
