# SPDX-License-Identifier: Apache-2.0
"""Beyond the checkpoint's max_position_embeddings: refused with both numbers, unless it is asked for by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blockwave import CodesError, Token2Wav
from blockwave.testing import EXACT
from tests.least import least_checkpoint

LIMIT = 120  # codes; two frames each
OPTIONS = {"voice": "Ethan", "steps": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("any") / "short"
    return least_checkpoint(folder, max_position_embeddings=2 * LIMIT)


@pytest.fixture(scope="module")
def model(folder: Path) -> Token2Wav:
    return Token2Wav.from_pretrained(folder)


@pytest.fixture(scope="module")
def unlimited(folder: Path) -> Token2Wav:
    """The same weights, whose config allows more positions."""
    return Token2Wav.from_pretrained(least_checkpoint(folder.with_name("long"), max_position_embeddings=32_768))


def codes_of(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(1, 8194, length)


def worst(a: np.ndarray, b: np.ndarray) -> float:
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / np.abs(b).max())


def test_the_limit_itself_is_allowed(model: Token2Wav) -> None:
    assert len(model(codes_of(LIMIT), seed=0, **OPTIONS).samples) == 480 * LIMIT


@pytest.mark.parametrize("surplus", [1, 1000])
def test_a_call_beyond_the_limit_is_refused(model: Token2Wav, surplus: int) -> None:
    count = LIMIT + surplus
    message = (
        f"got {count} codes = {2 * count} mel frames, expected at most max_position_embeddings = {2 * LIMIT} frames; "
    )
    with pytest.raises(CodesError) as caught:
        model(codes_of(count), seed=0, **OPTIONS)
    assert str(caught.value).startswith(f"codes: {message}")
    with pytest.raises(CodesError) as caught:
        model([codes_of(5), codes_of(count)], seed=0, **OPTIONS)
    assert str(caught.value).startswith(f"codes[1]: {message}")
    assert len(model.engine.scheduler) == 0


@pytest.mark.parametrize("length", [LIMIT + 1, 5 * LIMIT + 7])
def test_any_length_changes_nothing_but_the_limit(model: Token2Wav, unlimited: Token2Wav, length: int) -> None:
    """The call equals the exact stream, and both are what the weights give where no limit stands in the way."""
    codes = codes_of(length)
    usual = unlimited(codes, seed=3, **OPTIONS)
    call = model(codes, seed=3, any_length=True, **OPTIONS)
    np.testing.assert_array_equal(call.mel, usual.mel)
    np.testing.assert_array_equal(call.samples, usual.samples)
    stream = model.stream(seed=3, look_ahead="exact", any_length=True, **OPTIONS)
    chunks = list(stream.over([codes[:50], codes[50:]]))
    assert worst(np.concatenate([chunk.mel for chunk in chunks]), call.mel) <= EXACT
    assert worst(np.concatenate([chunk.samples for chunk in chunks]), call.samples) <= EXACT


def test_any_length_in_a_list(model: Token2Wav) -> None:
    batch = [codes_of(LIMIT + 30), codes_of(9)]
    long, short = model(batch, seed=[1, 2], any_length=True, **OPTIONS)
    assert (len(long.samples), len(short.samples)) == (480 * (LIMIT + 30), 480 * 9)
    assert worst(short.samples, model(batch[1], seed=2, **OPTIONS).samples) <= EXACT
