# SPDX-License-Identifier: Apache-2.0
"""A study of a tiny checkpoint, its report and its page."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import soundfile

from blockwave import CodesError, OptionError
from blockwave.audio import to_pcm16
from blockwave.codes_file import CodesFile
from blockwave.quality import schemes
from blockwave.quality.error_rates import ErrorCounts
from blockwave.quality.page import PAGE_FORMATS, page, player
from blockwave.quality.report import report
from blockwave.quality.settings import parse_setting
from blockwave.quality.study import Study, Trial

NAMES = ("solver=euler,steps=4", "solver=euler,steps=3", "solver=euler,steps=4,look-ahead=0")
AGAINST = parse_setting("solver=euler,steps=4")


class Parrot:
    """A recogniser that hears the same whatever is said."""

    def hear(self, samples: np.ndarray, rate: int) -> str:
        return "sentence of fifty"


@pytest.fixture(scope="module")
def study(folder, sentences) -> Study:
    return Study([parse_setting(name) for name in NAMES], AGAINST, sentences, folder, recogniser=Parrot())


@pytest.fixture(scope="module")
def trials(study) -> list[Trial]:
    return list(study.trials())


def test_every_sentence_by_every_setting(study, trials):
    assert [(trial.sentence, trial.is_reference, trial.setting.name) for trial in trials] == [
        (i, reference, name)
        for i in range(3)
        for reference, name in ((True, AGAINST.name), *((False, n) for n in NAMES))
    ]
    for trial in trials:
        assert len(trial.sound.samples) == 480 * len(study.sentences[trial.sentence].codes)
        assert (trial.seconds > 0, trial.faults) == (True, ())


def test_the_order_goes_round(study, monkeypatch):
    """So that no setting always runs behind the same other one."""
    order = []

    def render(model, codes, voice, seed, setting):
        order.append((seed, setting.name))
        return schemes.render(model, codes, voice, seed, parse_setting("solver=euler,steps=2"))

    monkeypatch.setattr("blockwave.quality.study.render", render)
    list(study.trials())
    rounds = [[name for seed, name in order[4:] if seed == i] for i in range(3)]
    ways = [AGAINST.name, *NAMES]
    assert [name for _, name in order[:4]] == ways
    assert rounds == [ways[i:] + ways[:i] for i in range(3)]


def test_the_reference_is_zero_from_itself_and_others_are_not(trials):
    same, fewer, blind = (
        [trial.figures for trial in trials if trial.setting.name == name and not trial.is_reference] for name in NAMES
    )
    for figures in same:
        for key in ("flow_mel", "flow_mel_worst_block", "log_mel", "log_mel_worst_block", "spectral_convergence"):
            assert figures[key] == 0
        assert (figures["si_sdr_db"], figures["level_db"], figures["join_roughness_added"]) == (144.5, 0, 0)
    for figures in (*fewer, *blind):
        assert 1e-4 < figures["flow_mel"] < figures["flow_mel_worst_block"]
        assert figures["si_sdr_db"] < 100


def test_report(study, trials):
    content = json.loads(json.dumps(report(study, trials), allow_nan=False))
    assert (content["against"], content["sentences"], content["audio_s"]) == (AGAINST.name, 3, 153 / 50)
    rows = [(row["setting"], row["evaluations"]) for row in content["rows"]]
    assert rows == [
        (NAMES[0], 3),
        (NAMES[1], 2),
        (NAMES[2], 3),
    ]
    for row in content["rows"]:
        figure = row["figures"]["log_mel"]
        assert figure["least"] <= figure["low"] <= figure["value"] <= figure["high"] <= figure["most"]
        assert (figure["sentences"], row["faults"]) == (3, 0)
        assert row["speed"]["low"] <= row["speed"]["value"] <= row["speed"]["high"]
    assert content["reference"]["speed"]["value"] == 1
    assert len(content["details"]) == len(trials)
    assert "details" not in report(study, trials, details=False)


def test_errors_are_pooled_and_paired(study, trials):
    """Heard is "sentence of fifty" for "sentence of fifty/forty one/sixty two codes": 1, 3, 3 errors in 14."""
    content = report(study, trials)
    assert (content["reference"]["words"]["errors"], content["reference"]["words"]["said"]) == (7, 14)
    assert content["reference"]["words"]["percent"]["value"] == pytest.approx(50)
    worse = [
        trial
        if trial.is_reference or trial.setting.name != NAMES[1]
        else replace(trial, errors=_one_more(trial.errors))
        for trial in trials
    ]
    added = [row["words"]["percent_added"] for row in report(study, worse)["rows"]]
    assert added[0] == {"value": 0, "low": 0, "high": 0}
    assert added[1]["value"] == pytest.approx(100 * 3 / 14, rel=1e-5)
    assert 100 / 5 <= added[1]["low"] <= added[1]["high"] <= 100 / 4


def _one_more(errors: ErrorCounts | None) -> ErrorCounts:
    assert errors is not None
    return replace(errors, word_errors=errors.word_errors + 1)


class Collector(HTMLParser):
    """What a page refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for key, value in attrs if key in ("src", "href", "action", "data", "poster")]


def test_page(study, trials):
    players: dict[int, list[str]] = {}
    for trial in trials:
        players.setdefault(trial.sentence, []).append(player(trial, "flac"))
    text = page(report(study, trials), ["<script>alert(1)</script>", None, "a & b"], players)
    found = Collector(text)
    assert (found.tags.count("audio"), found.tags.count("section"), found.tags.count("script")) == (12, 3, 1)
    assert len(found.sources) == 12
    for trial, source in zip(trials, found.sources, strict=True):
        head, _, data = source.partition(";base64,")
        assert head == "data:audio/flac"
        samples, rate = soundfile.read(io.BytesIO(base64.b64decode(data)), dtype="int16")
        assert rate == trial.sound.rate
        assert np.array_equal(samples, to_pcm16(trial.sound.samples))
    assert not re.search(r"https?://|@import|url\(|fetch|XMLHttp|\bimport\b", text)
    assert "default-src 'none'" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "$" not in re.sub(r'src="[^"]*"', "", text)


@pytest.mark.parametrize("format", PAGE_FORMATS)
def test_players_in_every_format(trials, format: str):
    data = player(trials[0], format).partition(";base64,")[2].partition('"')[0]
    samples, _ = soundfile.read(io.BytesIO(base64.b64decode(data)))
    assert abs(len(samples) - len(trials[0].sound.samples)) < 3000  # mp3 pads


def test_what_cannot_be_studied(folder, sentences):
    exact = parse_setting("exact")
    with pytest.raises(OptionError, match="settings: got none, expected each once"):
        Study([], exact, sentences, folder)
    with pytest.raises(OptionError, match="settings: got exact twice, expected each once"):
        Study([exact, exact], exact, sentences, folder)
    with pytest.raises(OptionError, match="sentences: got none, expected at least one"):
        Study([exact], exact, [], folder)
    mute = [sentences[0], CodesFile(sentences[1].codes)]
    with pytest.raises(OptionError, match="sentences: got no text with sentence 1, expected one with each"):
        Study([exact], exact, mute, folder, recogniser=Parrot())
    with pytest.raises(CodesError, match="sentence 0: got codes of family 'blockwave-heart', expected 'qwen"):
        Study([exact], exact, [CodesFile(np.array([1]), "blockwave-heart")], folder)
    with pytest.raises(CodesError, match="sentence 1: got id 9000 at position 2"):
        Study([exact], exact, [sentences[0], CodesFile(np.array([1, 2, 9000]))], folder)
