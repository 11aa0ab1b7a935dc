# SPDX-License-Identifier: Apache-2.0
"""The held-out sentences are many, different, of every kind, and say whose they are."""

from __future__ import annotations

import json
import re

from blockwave.embedded import FOLDER, held_out

TEXTS = [sentence.text or "" for sentence in held_out()]


def test_many_and_none_twice():
    assert len(TEXTS) >= 40
    assert len({text.lower() for text in TEXTS}) == len(TEXTS)


def test_of_every_kind():
    words = [len(text.split()) for text in TEXTS]
    assert min(words) <= 2
    assert max(words) >= 30
    assert sum("?" in text for text in TEXTS) >= 6
    assert sum(bool(re.search("[0-9]", text)) for text in TEXTS) >= 6
    # A capital letter behind the first word: a name, a day or a month.
    assert sum(bool(re.search(r"[a-z,] [A-Z][a-z]", text)) for text in TEXTS) >= 10


def test_the_file_says_its_licence_and_source():
    content = json.loads((FOLDER / "held_out.json").read_text(encoding="utf-8"))
    assert content["licence"] == "Apache-2.0"
    assert "None was used in training" in content["about"]
    assert "hibari-tts" in content["source"]


def test_codes_last_as_long_as_speech_does():
    """Between 5 and 22 characters a second: codes of another sentence would soon fall outside."""
    paces = [len(sentence.text or "") / (len(sentence.codes) / 50) for sentence in held_out()]
    assert min(paces) > 5
    assert max(paces) < 22
