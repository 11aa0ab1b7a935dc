# SPDX-License-Identifier: Apache-2.0
"""The documented JSON: written, read again, and what it refuses. Other kinds of files are tested with the program."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockwave import CodesError, CodesFile, load_codes
from blockwave.codes_file import parse_codes
from blockwave.config import Token2WavConfig
from blockwave.weights.presets import config_json

CONFIG = Token2WavConfig.from_dict(config_json("tiny"))
TEXTS = st.none() | st.text(st.characters(codec="utf-8"))


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    TEXTS,
    st.none() | st.integers(1, 1000) | st.floats(0.1, 1000),
    TEXTS,
    TEXTS,
)
def test_written_and_read_again(codes, family, rate, codebook, text):
    written = CodesFile(np.array(codes, np.int64), family, rate, codebook, text)
    read = parse_codes(written.to_json().encode())
    np.testing.assert_array_equal(read.codes, codes)
    assert (read.family, read.rate, read.codebook, read.text) == (family, rate, codebook, text)


def test_save(tmp_path):
    path = CodesFile(np.array([1, 2]), "qwen2.5-omni", 50.0, text="hé").save(tmp_path / "new" / "c.json")
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "codes": [1, 2],
        "family": "qwen2.5-omni",
        "rate": 50,
        "codebook": None,
        "text": "hé",
    }
    assert load_codes(path).text == "hé"
    assert [entry.name for entry in path.parent.iterdir()] == ["c.json"]


def test_text_of_any_spacing():
    @given(
        st.lists(st.integers(-(10**17), 10**17), min_size=1), st.sampled_from([" ", ",", ", ", "\n", "\r\n", " ,\t"])
    )
    def check(codes, separator):
        np.testing.assert_array_equal(parse_codes(separator.join(map(str, codes)).encode()).codes, codes)

    check()


@given(st.binary(max_size=60))
def test_any_bytes_are_codes_or_a_codes_error(data):
    try:
        codes = parse_codes(data).codes
    except CodesError:
        return
    assert codes.dtype == np.int64


@pytest.mark.parametrize(
    ("about", "what"),
    [({"family": "other"}, "family 'other'"), ({"rate": 25.0}, "rate 25.0"), ({"rate": 50.5}, "rate 50.5")],
)
def test_codes_of_another_checkpoint_are_refused(about, what):
    with pytest.raises(CodesError, match=f"here: got codes of {what}, expected"):
        CodesFile(np.array([1]), **about).check_fits(CONFIG, "here")


def test_what_is_not_said_is_not_checked():
    CodesFile(np.array([1])).check_fits(CONFIG)
    CodesFile(np.array([1]), "qwen2.5-omni", 50, "any codebook: the checkpoint names none").check_fits(CONFIG)
