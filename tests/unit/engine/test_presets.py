# SPDX-License-Identifier: Apache-2.0
"""Presets stand for flows, what is given beside them goes first, and each is what the plain options give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blockwave import OptionError, Token2Wav
from blockwave.engine import Flow
from blockwave.engine.presets import PRESETS, flow_of
from tests.least import least_checkpoint


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Token2Wav:
    folder: Path = tmp_path_factory.mktemp("presets")
    return Token2Wav.from_pretrained(least_checkpoint(folder / "checkpoint"))


def test_exact_is_the_default_and_the_reference() -> None:
    assert flow_of() == flow_of("exact") == PRESETS["exact"] == Flow(10, -1.0, "rk4", "evaluation")


def test_what_is_given_goes_before_the_preset() -> None:
    fast = PRESETS["fast"]
    assert flow_of("fast", steps=7) == Flow(7, -1.0, fast.solver, fast.guidance_per)
    assert flow_of("fast", solver="euler") == Flow(fast.steps, -1.0, "euler", fast.guidance_per)
    assert flow_of("fast", sway=None).sway is None
    assert flow_of("fast", guidance_per="evaluation") == Flow(fast.steps, -1.0, fast.solver)


@pytest.mark.parametrize("preset", ["fastest", "", None, 1])
def test_unknown_presets(model: Token2Wav, preset: Any) -> None:
    with pytest.raises(OptionError, match=r"preset: got .*, expected one of \['exact', 'fast', 'faster'\]"):
        model([1, 2, 3], preset=preset)
    with pytest.raises(OptionError, match="preset: got"):
        model.stream(preset=preset)


@pytest.mark.parametrize("preset", PRESETS)
def test_calls_and_streams_take_them(model: Token2Wav, preset: str) -> None:
    codes, flow = np.arange(1, 61), PRESETS[preset]
    speech = model(codes, seed=1, preset=preset)
    same = model(codes, seed=1, steps=flow.steps, solver=flow.solver, guidance_per=flow.guidance_per)
    np.testing.assert_array_equal(speech.samples, same.samples)
    chunks = list(model.stream(seed=1, preset=preset, look_ahead="exact").over([codes]))
    mel = np.concatenate([chunk.mel for chunk in chunks])
    assert np.abs(mel - speech.mel).max() <= 1e-5 * np.abs(speech.mel).max()
    exact = model(codes, seed=1)
    assert np.array_equal(speech.mel, exact.mel) == (preset == "exact")


def test_without_guidance_there_is_none_once_a_step_either(model: Token2Wav) -> None:
    codes = np.arange(1, 41)
    one, other = (model(codes, seed=1, guidance=0.0, guidance_per=per) for per in ("evaluation", "step"))
    np.testing.assert_array_equal(one.mel, other.mel)
