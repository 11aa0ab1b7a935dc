# SPDX-License-Identifier: Apache-2.0
"""Figures with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from blockwave import OptionError
from blockwave.quality import compare, correlation, largest_difference, share_of_largest
from blockwave.quality.picture import save_mel_picture

MEL = np.linspace(-11, 2, 80 * 6).reshape(6, 80).astype(np.float32)
WAVE = np.sin(np.arange(1440) / 7).astype(np.float32)


def test_differences():
    assert largest_difference(np.array([1.0, -2.0]), np.array([1.5, -2.25])) == 0.5
    assert share_of_largest(np.array([1.0, -2.0]), np.array([1.5, -2.5])) == pytest.approx(0.2)


def test_correlation():
    assert correlation(WAVE, 3 * WAVE + 1) == pytest.approx(1)
    assert correlation(WAVE, -WAVE) == pytest.approx(-1)
    whole_turns = np.arange(1000) * 2 * np.pi / 100
    assert correlation(np.sin(whole_turns), np.cos(whole_turns)) == pytest.approx(0, abs=1e-12)
    assert correlation(np.ones(5), np.ones(5)) == 1
    assert correlation(np.ones(5), np.zeros(5)) == 0


def test_unequal_shapes_are_refused():
    with pytest.raises(OptionError, match=r"got shapes \[2\] and \[3\], expected equal ones"):
        largest_difference(np.zeros(2), np.zeros(3))


def verdicts(mel_error: float = 0.0, wave_error: float = 0.0) -> dict[tuple[str, str], bool]:
    rows = compare(MEL + np.float32(mel_error), MEL, WAVE + np.float32(wave_error) * WAVE[::-1], WAVE)
    return {(row.stage, row.figure): row.passed for row in rows}


def test_equal_renderings_pass():
    assert all(verdicts().values())


def test_the_published_bar_and_ours_are_apart():
    """2e-5 on a mel that reaches 11: above the published bar, within 1e-5 of the largest value."""
    assert [key for key, passed in verdicts(mel_error=2e-5).items() if not passed] == [("mel", "largest difference")]
    rows = compare(MEL + np.float32(2e-5), MEL, WAVE, WAVE)
    assert [row.binding for row in rows if not row.passed] == [False]
    assert {row.figure for row in rows if not row.binding} == {"largest difference", "of the largest value"}


def test_real_differences_fail():
    assert not verdicts(mel_error=1e-3)["mel", "of the largest value"]
    assert not verdicts(wave_error=1e-3)["waveform", "of the largest value"]
    assert verdicts(wave_error=1e-3)["waveform", "correlation"]
    assert not verdicts(wave_error=0.1)["waveform", "correlation"]


def test_another_length_is_all_that_is_said():
    rows = compare(MEL, MEL, WAVE[:-480], WAVE)
    assert [(row.stage, row.passed, row.binding) for row in rows] == [("length", False, True)]


def test_a_picture(tmp_path):
    path = save_mel_picture(tmp_path / "mel.png", np.repeat(MEL, 20, 0), 24, "a mel")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["mel.png"]
