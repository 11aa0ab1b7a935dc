# SPDX-License-Identifier: Apache-2.0
"""``voices``: what a checkpoint has, and small files of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from blockwave import Voice
from blockwave.weights.voices import load_voices
from tests.cli import inputs
from tests.cli.conftest import tree


def test_list(run):
    text = run("voices", "list", "-m", "model").out.decode()
    assert [line.split() for line in text.splitlines() if "Chelsie" in line or "Ethan" in line] == [
        ["Chelsie", "4.00", "s", "default"],
        ["Ethan", "3.00", "s"],
    ]
    listed = json.loads(run("voices", "list", "-m", "model", "--json").out)
    assert [(voice["name"], voice["default"], voice["reference_frames"]) for voice in listed["voices"]] == [
        ("Chelsie", True, 400),
        ("Ethan", False, 300),
    ]


def test_show(run, place, checkpoint):
    voice = load_voices(checkpoint)["Ethan"]
    shown = json.loads(run("voices", "show", "ETHAN", "-m", "model", "--json").out)
    assert shown["name"] == "Ethan"
    assert (shown["xvector"], shown["reference_frames"], shown["reference_bins"]) == (192, 300, 80)
    assert shown["reference_mean"] == pytest.approx(voice.reference_mel.mean(), rel=1e-5)
    assert shown["xvector_norm"] == pytest.approx(np.linalg.norm(voice.xvector.astype(float)))
    Path("v.safetensors").write_bytes(inputs.voice())
    assert "reference frames   60" in run("voices", "show", "v.safetensors").out.decode()


def test_check(run, place):
    Path("v.safetensors").write_bytes(inputs.voice())
    result = run("voices", "check", "v.safetensors", "-m", "model")
    assert (result.code, result.out, result.err) == (0, b"", "v.safetensors: Mine can be used and fits model\n")
    assert run("voices", "check", "v.safetensors", "v.safetensors").err == "v.safetensors: Mine can be used\n" * 2


def test_a_converted_voice_speaks_as_the_original(run, speak, place):
    result = run("voices", "convert", "model/spk_dict.pt", "--speaker", "ethan", "-o", "e.safetensors")
    assert (result.code, result.out) == (0, b"")
    assert result.err == "e.safetensors: voice Ethan, 3.00 s of reference\n"
    by_name, by_file = (
        speak("a.json", "-o", "-", "--seed", 1, "--voice", voice) for voice in ("Ethan", "e.safetensors")
    )
    assert by_name.out == by_file.out
    assert speak("a.json", "-o", "-", "--seed", 1).out != by_name.out


@pytest.mark.parametrize("kind", ["json", "npz", "npz with a batch axis", "safetensors"])
def test_convert_from_arrays(run, place, kind):
    xvector, mel = np.arange(192, dtype=np.float32), np.linspace(-9, 1, 480, dtype=np.float32).reshape(6, 80)
    content = {
        "json": inputs.js(
            {"name": "Ann", "xvector": xvector.tolist(), "reference_mel": mel.tolist(), "info": {"by": "me"}}
        ),
        "npz": inputs.npz(xvector=xvector, reference_mel=mel, name="Ann"),
        "npz with a batch axis": inputs.npz(xvector=xvector[None], reference_mel=mel[None], name="Ann"),
        "safetensors": inputs.tensors({"name": "Ann"}, xvector=xvector, reference_mel=mel),
    }[kind]
    source = Path(f"source.{kind.split()[0]}")
    source.write_bytes(content)
    assert run("voices", "convert", source, "-o", "voices/v.safetensors").code == 0
    voice = Voice.load("voices/v.safetensors")
    np.testing.assert_array_equal(voice.xvector, xvector)
    np.testing.assert_array_equal(voice.reference_mel, mel)
    assert voice.name == "Ann"
    assert dict(voice.info) == ({"by": "me"} if kind == "json" else {})
    run("voices", "convert", source, "-o", "w.safetensors", "--name", "Bea")
    assert Voice.load("w.safetensors").name == "Bea"
    assert tree(place) == {"model", "a.json", source.name, "voices", "voices/v.safetensors", "w.safetensors"}


def test_a_voice_without_a_name_is_called_like_its_file(run, place):
    Path("zoe.npz").write_bytes(inputs.npz(xvector=np.ones(4), reference_mel=np.ones((5, 3))))
    run("voices", "convert", "zoe.npz", "-o", "v.safetensors")
    assert Voice.load("v.safetensors").name == "zoe"
