# SPDX-License-Identifier: Apache-2.0
"""The voice sounds as it did; where it does not, each kind of damage is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blockwave.encoder import Sound, reference_mel
from blockwave.quality.level import rms_dbfs
from tests.guard import guard
from tests.guard.guard import Rendering, complaints

BLOCK = 5760  # samples of 24 frames


@pytest.fixture(scope="module")
def committed() -> Rendering:
    return Rendering.load()


@pytest.fixture(scope="module")
def sounds() -> list[Sound]:
    return guard.render()


@pytest.fixture(scope="module")
def rendering(sounds) -> Rendering:
    return Rendering.of(sounds)


def test_the_voice_sounds_as_it_did(rendering, committed):
    """After a change that was meant: make rendering, and an entry under Numerics."""
    assert complaints(rendering, committed) == []


def test_the_file_is_small_and_says_much(committed):
    assert guard.FILE.stat().st_size < 300_000
    assert sum(map(len, committed.mels)) / 100 > 15
    assert sum(committed.word_errors) <= 1


def damaged(rendering: Rendering, sounds: list[Sound], index: int, samples: np.ndarray) -> Rendering:
    """The rendering with one sentence's sound replaced; the recogniser's verdict is left as it was."""
    mels, levels = list(rendering.mels), list(rendering.levels)
    mels[index] = reference_mel(Sound(samples, sounds[index].rate))
    levels[index] = rms_dbfs(samples) or 0.0
    return replace(rendering, mels=mels, levels=levels)


@pytest.mark.parametrize("index", range(len(guard.SENTENCES)))
def test_two_blocks_swapped(rendering, committed, sounds, index: int):
    """Energy is the same, place is not: the log-mel tells."""
    samples = sounds[index].samples.copy()
    samples[2 * BLOCK : 3 * BLOCK], samples[3 * BLOCK : 4 * BLOCK] = (
        sounds[index].samples[3 * BLOCK : 4 * BLOCK],
        sounds[index].samples[2 * BLOCK : 3 * BLOCK],
    )
    found = complaints(damaged(rendering, sounds, index, samples), committed)
    assert len(found) == 1
    assert f"sentence {guard.SENTENCES[index]}: log-mel of block" in found[0]


@pytest.mark.parametrize("index", range(len(guard.SENTENCES)))
def test_a_gain_step_of_one_decibel(rendering, committed, sounds, index: int):
    """From the middle on: level and log-mel tell."""
    samples = sounds[index].samples.copy()
    samples[len(samples) // 2 :] *= np.float32(10 ** (1 / 20))
    found = complaints(damaged(rendering, sounds, index, samples), committed)
    assert [text.split(": ")[1].split(" off")[0].split(" of")[0] for text in found] == ["log-mel", "level"]


def test_a_gain_step_in_the_last_block(rendering, committed, sounds):
    samples = sounds[0].samples.copy()
    samples[-BLOCK // 2 :] *= np.float32(10 ** (1 / 20))
    assert any("log-mel" in text for text in complaints(damaged(rendering, sounds, 0, samples), committed))


def test_words_that_are_no_longer_understood(rendering, committed):
    more = [errors + 1 for errors in committed.word_errors]
    assert complaints(replace(rendering, word_errors=more), committed) == [
        f"words: {sum(more)} wrong, expected at most {sum(committed.word_errors) + 1}"
    ]


def test_a_cut_rendering(rendering, committed):
    cut = [mel[:-2] for mel in rendering.mels]
    assert all("log-mel (" in text for text in complaints(replace(rendering, mels=cut), committed))


@pytest.mark.parametrize("setting", ["solver=euler,steps=10", "guidance=0", "look-ahead=1"])
def test_shortcuts_are_told(committed, rendering, setting: str):
    """A shortcut that became the default would not pass; the longest sentence shows it."""
    from blockwave import Token2Wav
    from blockwave.embedded import held_out
    from blockwave.quality.schemes import render
    from blockwave.quality.settings import parse_setting

    place = int(np.argmax([len(mel) for mel in committed.mels]))
    sentence = guard.SENTENCES[place]
    made = render(Token2Wav.from_pretrained(), held_out()[sentence].codes, None, sentence, parse_setting(setting))
    mels = list(rendering.mels)
    mels[place] = reference_mel(Sound(made.samples, 24_000))
    assert any(f"sentence {sentence}: log-mel" in text for text in complaints(replace(rendering, mels=mels), committed))
