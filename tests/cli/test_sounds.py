# SPDX-License-Identifier: Apache-2.0
"""Sound in, codes out, sound again; the demonstration; the measurements."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from blockwave.embedded import CODEBOOK, FAMILY, held_out
from blockwave.quality import MEL_BAR
from tests.cli.conftest import QUICK


def tone(rate: int, seconds: float, channels: int = 1) -> np.ndarray:
    """A sound that moves: a chirp with breath."""
    t = np.arange(round(rate * seconds)) / rate
    wave = 0.3 * np.sin(2 * np.pi * (150 * t + 60 * t**2)) + 0.01 * np.random.default_rng(0).normal(size=len(t))
    return np.repeat(wave[:, None], channels, 1)


@pytest.mark.parametrize(
    ("name", "rate", "channels", "seconds"),
    [("a.wav", 8_000, 2, 0.73), ("a.flac", 44_100, 1, 0.731), ("a.wav", 24_000, 1, 0.5), ("a.ogg", 11_025, 1, 0.41)],
)
def test_encode_and_speak(run, name: str, rate: int, channels: int, seconds: float):
    soundfile.write(name, tone(rate, seconds, channels), rate)
    frames = soundfile.info(name).frames
    encoded = run("encode", name, "--text", "la")
    assert encoded.code == 0, encoded.err
    file = json.loads(encoded.out)
    assert len(file.pop("codes")) == frames * 50 // rate
    assert file == {"family": FAMILY, "rate": 50, "codebook": CODEBOOK, "text": "la"}
    spoken = run("speak", "-", "-o", "out.wav", *QUICK, stdin=encoded.out)
    assert spoken.code == 0, spoken.err
    assert soundfile.info("out.wav").frames == 480 * (frames * 50 // rate)


def test_encode_from_a_pipe_into_a_file(run):
    buffer = io.BytesIO()
    soundfile.write(buffer, tone(16_000, 0.3), 16_000, format="FLAC")
    assert run("encode", "-", "-o", "codes.json", stdin=buffer.getvalue()).out == b""
    assert len(json.loads(Path("codes.json").read_text())["codes"]) == 15


def test_what_is_spoken_is_heard_again(run):
    """Codes -> sound -> codes: the mels behind both sequences of codes stay near each other."""
    from blockwave.embedded import FOLDER
    from blockwave.encoder import Codebook

    sentence = held_out()[0]
    sentence.save("said.json")
    assert run("speak", "said.json", "-o", "said.wav", "--seed", "0", "--threads", "1").code == 0
    heard = np.array(json.loads(run("encode", "said.wav").out)["codes"])
    book = Codebook.load(FOLDER / "codebook.safetensors")
    said_mel, heard_mel = (
        book.centroids[codes - book.first_id].astype(np.float32) for codes in (sentence.codes, heard)
    )
    shuffled = np.random.default_rng(0).permutation(said_mel)
    near, far = np.abs(said_mel - heard_mel).mean(), np.abs(said_mel - shuffled).mean()
    assert near < 0.25 * far, (near, far)


def test_demo_speaks_and_draws(run, place):
    result = run("demo", "--count", "1", "--out", "made")
    assert (result.code, result.out) == (0, b""), result.err
    info = soundfile.info("made/blockwave-demo-1.wav")
    assert (info.frames, info.samplerate) == (480 * len(held_out()[0].codes), 24_000)
    assert Path("made/blockwave-demo-1.png").read_bytes().startswith(b"\x89PNG")
    assert held_out()[0].text in result.err


@pytest.mark.parametrize("args", [["--codes", "a.json", "--float64"], ["--guidance", "0", "--steps", "3"]])
def test_verify_passes_on_a_sound_engine(run, args: list[str]):
    result = run("verify", "--model", "model", *args, "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    assert report["passed"]
    rows = {(row["stage"], row["figure"]): row for row in report["rows"]}
    assert rows["length", "samples"]["value"] == 480 * report["codes"]
    assert rows["waveform", "correlation"]["value"] > 0.99999
    assert 0 < rows["mel", "of the largest value"]["value"] <= 1e-5
    assert rows["mel", "largest difference"]["bar"] == f"<= {MEL_BAR}"
    assert (("mel", "this engine to float64") in rows) == ("--float64" in args)


def test_verify_fails_on_a_wrong_engine(run, monkeypatch: pytest.MonkeyPatch):
    """Attention that misses its neighbours is told, row by row, with an exit code of its own."""
    from blockwave.config import DiTConfig

    monkeypatch.setattr(DiTConfig, "reach", lambda self, layer: (0, 0))
    result = run("verify", "--model", "model", "--steps", "3", "--json")
    assert result.code == 9
    report = json.loads(result.out)
    assert not report["passed"]
    failed = {(row["stage"], row["figure"]) for row in report["rows"] if not row["passed"]}
    assert failed >= {("mel", "largest difference"), ("mel", "of the largest value")}
    assert ("vocoder alone", "of the largest value") not in failed


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_verify_against_a_stored_waveform(run, shift: float):
    """The form of transformers' fixture; a waveform that is off by 0.1 fails."""
    from blockwave import Token2Wav

    codes, noise = [3380, 1835, 6379], np.random.default_rng(0).normal(size=(6, 80)).astype(np.float32)
    wave = Token2Wav.from_pretrained("model")(codes, "Ethan", noise=noise).samples
    stored = {
        "talker_codes": codes,
        "waveform_length": len(wave),
        "waveform_stride": 28,
        "waveform_strided": (wave[::28] + shift).tolist(),
    }
    Path("fixture.json").write_text(json.dumps(stored))
    np.save("noise.npy", noise)
    result = run(
        "verify", "--model", "model", "--fixture", "fixture.json", "--voice", "ethan", "--noise", "noise.npy", "--json"
    )
    assert (result.code == 0) == (shift == 0), result.err
    assert json.loads(result.out)["passed"] == (shift == 0)


def test_verify_prints_a_table(run):
    result = run("verify", "--model", "model", "--codes", "a.json", "--steps", "2")
    text = result.out.decode()
    assert result.code == 0
    assert all(word in text for word in ("length", "mel", "vocoder alone", "waveform", "correlation", "passes"))


def test_bench_stage(run):
    result = run("bench", "stage", "--model", "model", "--codes", "10", "--batch", "2", "--repeats", "1", "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    assert report["audio_s"] == pytest.approx(0.4)
    for run_name in ("cold", "warm"):
        figures = report[run_name]
        assert figures["rtf"] == pytest.approx(figures["total_s"] / 0.4)
        assert figures["total_s"] == pytest.approx(
            sum(figures[f"{part}_s"] for part in ("condition", "flow", "vocoder"))
        )
    assert report["environment"]["versions"]["torch"]
