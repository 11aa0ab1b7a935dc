# SPDX-License-Identifier: Apache-2.0
"""STOI and PESQ at the ends of their scales, where the standards give the value."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from blockwave import MissingExtraError
from blockwave.embedded import held_out
from blockwave.quality.intelligibility import stoi
from blockwave.quality.perception import pesq

RATE = 24_000
RNG = np.random.default_rng(0)
T = np.arange(2 * RATE) / RATE
# Syllables: a harmonic tone that comes and goes, over faint noise.
VOWELS = sum(np.sin(2 * np.pi * 150 * k * T) / k for k in range(1, 20)) * np.maximum(0, np.sin(2 * np.pi * 2 * T))
SPEECH = (0.1 * VOWELS + 1e-3 * RNG.normal(size=len(T))).astype(np.float32)
NOISE = RNG.normal(size=len(T)).astype(np.float32)


def test_stoi():
    """A correlation: 1 for equal sounds and for any gain, falling with noise."""
    pytest.importorskip("pystoi")
    assert stoi(SPEECH, SPEECH, RATE) == pytest.approx(1, abs=1e-9)
    assert stoi(np.float32(0.25) * SPEECH, SPEECH, RATE) == pytest.approx(1, abs=1e-6)
    values = [stoi(SPEECH + np.float32(level) * NOISE, SPEECH, RATE) for level in (0.01, 0.1, 1.0)]
    assert 1 > values[0] > values[1] > values[2]


def test_stoi_needs_a_moment_of_speech():
    pytest.importorskip("pystoi")
    assert stoi(SPEECH[:9000], SPEECH[:9000], RATE) is None
    assert stoi(SPEECH, np.zeros_like(SPEECH), RATE) is None
    mostly_silent = np.zeros_like(SPEECH)
    mostly_silent[:3000] = SPEECH[3000:6000]
    assert stoi(mostly_silent, mostly_silent, RATE) is None


def test_pesq():
    """Equal sounds have P.862's largest score, 4.5, as P.862.2 maps it."""
    pytest.importorskip("pesq")
    best = 0.999 + 4 / (1 + np.exp(-1.3669 * 4.5 + 3.8224))
    assert pesq(SPEECH, SPEECH, RATE) == pytest.approx(best, abs=1e-4)
    values = [pesq(SPEECH + np.float32(level) * NOISE, SPEECH, RATE) for level in (1e-3, 1e-2, 1e-1)]
    assert best > values[0] > values[1] > values[2] >= 1


def test_pesq_needs_an_utterance():
    pytest.importorskip("pesq")
    assert pesq(SPEECH[:4800], SPEECH[:4800], RATE) is None
    assert pesq(np.zeros_like(SPEECH), np.zeros_like(SPEECH), RATE) is None


def test_the_reference_goes_first(monkeypatch):
    """Neither measure is symmetric: both packages take the clean sound before the other."""
    calls = []
    fake = SimpleNamespace(
        stoi=lambda clean, other, rate: calls.append((clean, other)) or 0.5,
        pesq=lambda rate, clean, other, mode: calls.append((clean, other)) or 0.5,
        NoUtterancesError=ValueError,
        BufferTooShortError=ValueError,
    )
    monkeypatch.setitem(sys.modules, "pystoi", fake)
    monkeypatch.setitem(sys.modules, "pesq", fake)
    assert stoi(NOISE, SPEECH, 16_000) == pesq(NOISE, SPEECH, 16_000) == 0.5
    for clean, other in calls:
        assert np.array_equal(clean, SPEECH)
        assert np.array_equal(other, NOISE)


@pytest.mark.parametrize(
    ("measure", "package", "message"),
    [
        (stoi, "pystoi", r'STOI needs pystoi, which is not installed; run: pip install "blockwave\[quality\]"'),
        (pesq, "pesq", r'PESQ needs pesq, which is not installed; run: pip install "blockwave\[pesq\]" \(it needs a C'),
    ],
)
def test_what_is_missing_is_named(monkeypatch, measure, package: str, message: str):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=message):
        measure(SPEECH, SPEECH, RATE)


def test_sentences_are_long_enough():
    """Every held-out sentence can be measured, the shortest too."""
    assert min(len(sentence.codes) for sentence in held_out()) / 50 > 0.5
