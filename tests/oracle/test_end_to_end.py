# SPDX-License-Identifier: Apache-2.0
"""Codes to sound against transformers: one checkpoint on disk, both libraries, the same noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from blockwave import Token2Wav
from blockwave.weights.make import make_checkpoint
from tests.reference import load_reference, reference_speech

BOUND = 1e-5  # of the reference's largest value
LENGTHS = (3, 50, 119)
# transformers' own regression fixture: 119 talker codes of Qwen2.5-Omni-7B.
FIXTURE_CODES = [3380, 1835, 6379, *[2557] * 3, 2983, 6379, 6379, 4632, *[5194] * 90, 3380, *[5194] * 18]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("end_to_end") / "checkpoint", "tiny", shards=3)


@pytest.fixture(scope="module")
def ours(folder: Path) -> Token2Wav:
    return Token2Wav.from_pretrained(folder)


@pytest.fixture(scope="module")
def reference(folder: Path):
    return load_reference(folder)


def worst(ours: np.ndarray, reference: np.ndarray) -> float:
    assert ours.shape == reference.shape
    return float(np.abs(ours - reference).max() / np.abs(reference).max())


def random_codes(length: int) -> list[int]:
    return np.random.default_rng(length).integers(1, 8194, length).tolist()


@pytest.mark.parametrize("codes", [FIXTURE_CODES, [5], random_codes(12), random_codes(13)], ids=len)
def test_equals_transformers(ours: Token2Wav, reference, codes: list[int]) -> None:
    speech = ours(codes, voice="Ethan", seed=len(codes))
    mel, wave = reference_speech(reference, codes, ours.voice("Ethan"), seed=len(codes))
    assert worst(speech.mel, mel) <= BOUND
    assert worst(speech.samples, wave) <= BOUND
    assert len(speech.samples) == 480 * len(codes)


@pytest.mark.parametrize("guidance", [0.0, 3.0])
@pytest.mark.parametrize("steps", [2, 3])
def test_equals_transformers_at_other_settings(ours: Token2Wav, reference, guidance: float, steps: int) -> None:
    codes = random_codes(31)
    speech = ours(codes, seed=7, guidance=guidance, steps=steps)
    mel, wave = reference_speech(reference, codes, ours.voice(), seed=7, guidance_scale=guidance, num_steps=steps)
    assert worst(speech.mel, mel) <= BOUND
    assert worst(speech.samples, wave) <= BOUND


def test_a_batch_equals_transformers_item_by_item(ours: Token2Wav, reference) -> None:
    """Unequal lengths, voices with references of unequal length: what padding would leak, this would show."""
    codes = [random_codes(length) for length in LENGTHS]
    voices = ["Chelsie", "Ethan", "chelsie"]
    assert len(ours.voice("Chelsie").reference_mel) != len(ours.voice("Ethan").reference_mel)
    for i, speech in enumerate(ours(codes, voice=voices, seed=[10, 11, 12])):
        mel, wave = reference_speech(reference, codes[i], ours.voice(voices[i]), seed=10 + i)
        assert worst(speech.mel, mel) <= BOUND
        assert worst(speech.samples, wave) <= BOUND


def test_the_random_checkpoint_makes_real_sound(ours: Token2Wav) -> None:
    """A silent or clipped wave would hide any error."""
    largest = np.abs(ours(FIXTURE_CODES, seed=0).samples).max()
    assert 0.02 < largest < 0.95


def test_every_condition_matters(ours: Token2Wav) -> None:
    """The comparisons above mean something only if codes, voice, noise and guidance all reach the sound."""
    codes = random_codes(40)
    usual = ours(codes, voice="Chelsie", seed=0).mel
    others = {
        "codes": ours(codes[::-1], voice="Chelsie", seed=0).mel,
        "voice": ours(codes, voice="Ethan", seed=0).mel,
        "noise": ours(codes, voice="Chelsie", seed=1).mel,
        "guidance": ours(codes, voice="Chelsie", seed=0, guidance=0.0).mel,
    }
    changes = {name: worst(mel, usual) for name, mel in others.items()}
    assert min(changes.values()) > 1000 * BOUND, changes


def test_float64_lies_between(ours: Token2Wav, folder: Path) -> None:
    """Our float32 is as near to the exact value as the bound demands."""
    exact = Token2Wav.from_pretrained(folder, dtype=torch.float64)
    codes = random_codes(50)
    assert worst(ours(codes, seed=3).mel, exact(codes, seed=3).mel) <= BOUND
