# SPDX-License-Identifier: Apache-2.0
"""``speak`` with one input: what goes in, what comes out, and where."""

from __future__ import annotations

import errno
import io
import json
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import load_file, save_file

from blockwave import Token2Wav
from tests.cli import inputs
from tests.cli.conftest import CODES, tree

SAMPLES = 480 * len(CODES)
WARNING = "warning: model: the weights are random; the sound is noise, not speech\n"
# First bytes of a file, and what stands at a later place in it.
MAGIC = {
    "wav": (b"RIFF", 8, b"WAVEfmt "),
    "flac": (b"fLaC", 0, b""),
    "ogg": (b"OggS", 28, b"\x01vorbis"),
    "opus": (b"OggS", 28, b"OpusHead"),
    "mp3": (b"\xff\xf3", 0, b""),  # a frame of MPEG-2 layer III, as 24 kHz needs
}


def samples(data: bytes) -> np.ndarray:
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def test_the_sound_is_the_engine_s(speak, place, checkpoint):
    result = speak("a.json", "-o", "a.wav", "--seed", 7, "--voice", "ethan")
    assert (result.code, result.out) == (0, b"")
    speech = Token2Wav.from_pretrained(checkpoint)(CODES, "Ethan", seed=7, solver="euler", steps=2)
    expected = np.rint(np.clip(speech.samples.astype(float), -1, 1) * 32767)
    np.testing.assert_array_equal(samples(Path("a.wav").read_bytes()), expected)
    first, second = result.err.splitlines(keepends=True)
    assert first == WARNING
    assert second.startswith("a.wav: 0.06 s, voice Ethan, seed 7, RTF ")


def test_options_reach_the_engine(speak, place, checkpoint):
    options = ("--guidance", 0, "--sway", "none", "--max-duration", 0.05, "--dtype", "float64")
    result = speak("a.json", "-o", "a.wav", "--seed", 7, *options)
    model = Token2Wav.from_pretrained(checkpoint, dtype="float64")
    speech = model(CODES, seed=7, solver="euler", steps=2, guidance=0.0, sway=None, max_duration_s=0.05)
    expected = np.rint(np.clip(speech.samples.astype(float), -1, 1) * 32767)
    np.testing.assert_array_equal(samples(Path("a.wav").read_bytes()), expected)
    assert len(expected) == 2 * 480
    assert "a.wav: --max-duration cut 1 codes\n" in result.err


def test_threads(speak, place):
    try:
        assert speak("a.json", "-o", "a.wav", "--threads", 2).code == 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_seeds(speak, place):
    for name, seed in (("a.wav", 1), ("b.wav", 1), ("c.wav", 2)):
        assert speak("a.json", "-o", name, "--seed", seed).code == 0
    a, b, c = (Path(name).read_bytes() for name in ("a.wav", "b.wav", "c.wav"))
    assert a == b != c
    drawn = [speak("a.json", "-o", "d.wav", "--json").lines[0]["seed"] for _ in range(2)]
    assert drawn[0] != drawn[1]
    speak("a.json", "-o", "e.wav", "--seed", drawn[1])
    assert Path("e.wav").read_bytes() == Path("d.wav").read_bytes()


@pytest.mark.parametrize("by_suffix", [True, False])
@pytest.mark.parametrize("name", MAGIC)
def test_the_asked_format_is_delivered(speak, place, name, by_suffix):
    out, options = (f"a.{name.upper()}", ()) if by_suffix else ("a.sound", ("--format", name))
    assert speak("a.json", "-o", out, "--seed", 1, *options).code == 0
    start, at, later = MAGIC[name]
    data = Path(out).read_bytes()
    assert data.startswith(start)
    assert data[at:].startswith(later)
    sound, rate = soundfile.read(io.BytesIO(data))
    assert (sound.shape, rate) == ((SAMPLES,), 24_000)
    if name in ("wav", "flac"):
        speak("a.json", "-o", "-", "--seed", 1)
        raw = np.frombuffer(speak("a.json", "-o", "-", "--seed", 1).out, "<i2")
        np.testing.assert_array_equal(np.rint(sound * 32768), raw)


def test_standard_output_carries_sound_only(speak, place):
    speak("a.json", "-o", "a.wav", "--seed", 1)
    raw, wav = (speak("a.json", "-o", "-", "--seed", 1, *more) for more in ((), ("--format", "wav")))
    assert raw.out == samples(wav.out).tobytes()
    assert wav.out == Path("a.wav").read_bytes()
    assert raw.err.startswith(WARNING)
    assert "standard output: 0.06 s, voice Chelsie, seed 1, " in raw.err
    assert tree(place) == {"model", "a.json", "a.wav"}


KINDS = {
    "object.json": inputs.js({"codes": CODES, "family": "qwen2.5-omni", "rate": 50, "codebook": None, "text": "ä"}),
    "bom.json": b"\xef\xbb\xbf" + inputs.js(CODES),
    "row.json": inputs.js([CODES]),
    "framed.json": inputs.js([8293, *CODES, 8294, 8292]),
    "int64.npy": inputs.npy(CODES),
    "row.npy": inputs.npy([CODES], dtype=">i4"),
    "unsigned.npy": inputs.npy(CODES, dtype=np.uint16),
    "columns.npy": inputs.npy(np.asfortranarray([CODES])),
    "only.npz": inputs.npz(tokens=CODES),
    "named.npz": inputs.npz(codes=CODES, other=[1.0]),
    "spaces.txt": b"3380 1835\n6379\n",
    "commas.txt": b"3380, 1835,6379",
    "only.safetensors": inputs.tensors(tokens=CODES),
    "about.safetensors": inputs.tensors({"family": "qwen2.5-omni", "rate": "50"}, codes=CODES),
    "UPPER.JSON": inputs.js(CODES),
}


@pytest.fixture(scope="module")
def expected(checkpoint):
    speech = Token2Wav.from_pretrained(checkpoint)(CODES, seed=3, solver="euler", steps=2)
    return np.rint(np.clip(speech.samples.astype(float), -1, 1) * 32767)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_says_the_same(speak, place, expected, name):
    Path(name).write_bytes(KINDS[name])
    result = speak(name, "-o", "-", "--seed", 3)
    np.testing.assert_array_equal(np.frombuffer(result.out, "<i2"), expected)


@pytest.mark.parametrize(
    "stdin", [b"[3380, 1835, 6379]", KINDS["object.json"], b"3380 1835\n6379", b"3380,1835,6379\n"]
)
def test_standard_input(speak, expected, stdin):
    result = speak("-", "-o", "-", "--seed", 3, stdin=stdin)
    np.testing.assert_array_equal(np.frombuffer(result.out, "<i2"), expected)


def test_json_report(speak, place):
    Path("e.json").write_bytes(inputs.js([*CODES, 8294]))
    report = speak("e.json", "-o", "e.flac", "--json", "--seed", 5, "--max-duration", 0.04).lines[0]
    timings, rtf = report.pop("timings"), report.pop("rtf")
    assert report == {
        "input": "e.json",
        "path": "e.flac",
        "format": "flac",
        "codes": 2,
        "samples": 960,
        "sample_rate": 24_000,
        "seconds": 0.04,
        "kept": False,
        "voice": "Chelsie",
        "seed": 5,
        "ended": True,
        "cut": 1,
        "silent": False,
        "batch": 1,
    }
    assert set(timings) == {"condition_s", "flow_s", "vocoder_s", "batch_audio_s"}
    total = timings["condition_s"] + timings["flow_s"] + timings["vocoder_s"]
    assert rtf == pytest.approx(total / 0.04)


def test_codebooks(speak, place, checkpoint):
    """Codes of another codebook are refused; codes that name none, and checkpoints that name none, are not."""
    marked = Path("marked")
    marked.mkdir()
    for path in checkpoint.iterdir():
        (marked / path.name).symlink_to(path)
    config = json.loads((checkpoint / "config.json").read_text())
    config["blockwave"] = {"family": "mine", "codebook": "aaaa", "default_voice": "Ethan"}
    (marked / "config.json").unlink()
    (marked / "config.json").write_text(json.dumps(config))
    for codebook, model, code in (("aaaa", marked, 0), ("bbbb", marked, 3), ("bbbb", "model", 0), (None, marked, 0)):
        Path("c.json").write_bytes(inputs.js({"codes": CODES, "codebook": codebook}))
        result = speak("c.json", "-o", "-", "--model", model)
        assert result.code == code
    assert result.err.startswith("standard output: 0.06 s, voice Ethan")  # no weights marked as random, no warning
    Path("c.json").write_bytes(inputs.js({"codes": CODES, "codebook": "bbbb"}))
    assert speak("c.json", "-o", "-", "--model", marked).err == (
        "error: c.json: got codes of codebook 'bbbb', expected 'aaaa' as the checkpoint's; the same numbers mean other "
        "sounds there; use the checkpoint that these codes were made for\n"
    )


def test_silence_is_a_warning(speak, place, checkpoint):
    quiet = Path("quiet")
    quiet.mkdir()
    weights = load_file(checkpoint / "model.safetensors")
    last = "token2wav.code2wav_bigvgan_model.conv_post.weight"
    save_file(weights | {last: torch.zeros_like(weights[last])}, quiet / "model.safetensors")
    for name in ("config.json", "spk_dict.pt"):
        (quiet / name).symlink_to(checkpoint / name)
    result = speak("a.json", "-o", "a.wav", "--model", "quiet", "--json")
    assert "warning: a.wav: the sound is silent; check the codes and the voice\n" in result.err
    assert result.lines[0]["silent"] is True
    assert (result.code, samples(Path("a.wav").read_bytes()).any()) == (0, False)


def test_a_full_disk_leaves_nothing(speak, place, monkeypatch):
    def write_half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    Path("a.wav").write_bytes(b"old")
    before = tree(place)
    monkeypatch.setattr(Path, "write_bytes", write_half)
    result = speak("a.json", "-o", "a.wav")
    message = "a.wav: cannot be written (No space left on device); check the folder, its permissions and the free space"
    assert (result.code, result.out, result.err) == (6, b"", f"{WARNING}error: {message}\n")
    assert tree(place) == before
    assert Path("a.wav").read_bytes() == b"old"


def test_without_soundfile(speak, place, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    result = speak("a.json", "-o", "a.flac")
    assert (result.code, result.out) == (7, b"")
    assert result.err == (
        "error: format flac: needs soundfile, which is not installed (wav and pcm do not); "
        'run: pip install "blockwave[audio]"\n'
    )
    assert speak("a.json", "-o", "a.wav").code == 0
    assert speak("a.json", "-o", "a.pcm").code == 0
    assert Path("a.pcm").stat().st_size == 2 * SAMPLES


def test_an_old_libsndfile(speak, place, monkeypatch):
    monkeypatch.setattr(soundfile, "check_format", lambda container, subtype: container != "MP3")
    monkeypatch.setattr(soundfile, "__libsndfile_version__", "1.0.31")
    result = speak("a.json", "-o", "a.mp3")
    assert (result.code, result.err) == (
        6,
        "error: format mp3: libsndfile 1.0.31 cannot write MP3 MPEG_LAYER_III; expected 1.1 or newer, "
        "install a newer soundfile, or write wav\n",
    )
    assert tree(place) == {"model", "a.json"}
