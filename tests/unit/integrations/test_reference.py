# SPDX-License-Identifier: Apache-2.0
"""Which transformers may serve as the reference, and what is said where it is missing."""

from __future__ import annotations

import sys

import pytest
import torch

from blockwave import MissingExtraError, OptionError
from blockwave.embedded import FOLDER
from blockwave.integrations.reference import check_version, load_reference


@pytest.mark.parametrize("version", ["4.57.0", "4.57.3", "5.24.0", "5.25.1", "6.0.0", "5.24.0.dev0"])
def test_sound_versions(version: str):
    check_version(version)


@pytest.mark.parametrize("version", ["5.0.0", "5.1.2", "5.23.9"])
def test_wrong_versions(version: str):
    with pytest.raises(
        OptionError, match=rf"transformers: got {version}, expected 4.57 or >= 5.24; versions in between"
    ):
        check_version(version)


@pytest.mark.parametrize("version", ["4.52.0", "3.1"])
def test_unknown_versions(version: str):
    with pytest.raises(OptionError, match=rf"transformers: got {version}, expected 4.57 or >= 5.24$"):
        check_version(version)


def test_without_transformers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r'pip install "blockwave\[verify\]"'):
        load_reference(FOLDER)


def test_the_global_generator_is_left_alone():
    from blockwave import Token2Wav
    from tests.reference import reference_speech

    voice = Token2Wav.from_pretrained().voice()
    model, state = load_reference(FOLDER), torch.random.get_rng_state()
    reference_speech(model, [1, 2], voice, 0, num_steps=2)
    assert torch.equal(torch.random.get_rng_state(), state)
