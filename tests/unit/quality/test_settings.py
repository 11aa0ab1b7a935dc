# SPDX-License-Identifier: Apache-2.0
"""Texts and the settings they mean."""

from __future__ import annotations

import pytest

from blockwave import OptionError
from blockwave.quality.settings import parse_setting


@pytest.mark.parametrize(
    ("text", "evaluations", "expected"),
    [
        ("exact", 36, {}),
        ("solver=euler,steps=7", 6, {"solver": "euler", "steps": 7}),
        (" solver = euler , steps = 7 ", 6, {"solver": "euler", "steps": 7}),
        ("steps=5", 16, {"steps": 5}),
        ("guidance=0", 36, {"guidance": 0.0}),
        ("sway=none", 36, {"sway": None}),
        ("sway=0.5", 36, {"sway": 0.5}),
        ("exact,solver=rk4", 36, {}),
        ("preset=exact", 36, {}),
        ("preset=fast", 8, {"steps": 5, "solver": "rk2", "guidance_per": "step"}),
        ("preset=faster,steps=6", 10, {"steps": 6, "solver": "rk2", "guidance_per": "step"}),
        ("guidance_per=step", 36, {"guidance_per": "step"}),
    ],
)
def test_rendered_at_once(text: str, evaluations: int, expected: dict[str, object]):
    setting, usual = parse_setting(text), {"steps": 10, "sway": -1.0, "solver": "rk4", "guidance": 0.5}
    assert setting.options == {**usual, "guidance_per": "evaluation", **expected}
    assert setting.evaluations == evaluations
    assert (setting.look_ahead, setting.windowed, setting.dtype) == (None, False, "float32")
    assert setting.name == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "count"),
    [("exact", 72), ("guidance=0", 36), ("preset=fast", 12), ("preset=faster", 9), ("guidance-per=step", 45)],
)
def test_what_a_solve_costs(text: str, count: int):
    assert parse_setting(text).branch_evaluations == count


def test_streams_windows_and_dtypes():
    assert parse_setting("look-ahead=2").look_ahead == parse_setting("look_ahead=2").look_ahead == 2
    assert parse_setting("look-ahead=0").look_ahead == 0
    assert parse_setting("look-ahead=exact").look_ahead == "exact"
    window = parse_setting("window,solver=euler,steps=5")
    assert (window.windowed, window.evaluations) == (True, 4)
    assert parse_setting("dtype=bfloat16").dtype == "bfloat16"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "setting '': got '', expected exact, window or preset=, solver=, steps=, "),
        (
            "euler:10",
            "got 'euler:10', expected exact, window or preset=.*; put commas between terms, as solver=euler,st",
        ),
        ("exact=1", "got 'exact=1', expected exact, window or"),
        ("steps=3,steps=4", "setting 'steps=3,steps=4': got 'steps=4', twice; put commas"),
        ("steps=few", "setting 'steps=few': got steps 'few', expected an integer"),
        ("steps=1", "steps: got 1, expected an integer from 2 to 1000"),
        ("preset=fastest", "preset: got 'fastest', expected one of \\['exact', 'fast', 'faster'\\]"),
        ("guidance-per=time", "guidance_per: got 'time', expected one of \\['evaluation', 'step'\\]"),
        ("guidance=half", "setting 'guidance=half': got guidance 'half', expected a number"),
        ("guidance=nan", "guidance: got nan, expected a finite number"),
        ("solver=heun", "solver: got 'heun', expected one of"),
        ("dtype=int8", "dtype: got 'int8', expected one of"),
        ("look-ahead=-1", "got look-ahead -1, expected a number of blocks >= 0, or exact"),
        ("look-ahead=far", "got look-ahead 'far', expected an integer"),
        ("window,look-ahead=1", "got window and look-ahead, expected one of them: each is a way to stream"),
    ],
)
def test_what_cannot_be_meant(text: str, message: str):
    with pytest.raises(OptionError, match=message):
        parse_setting(text)
