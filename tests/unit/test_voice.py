# SPDX-License-Identifier: Apache-2.0
"""A voice comes back from its file as it went in; files and arrays that are no voice are refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file as save_torch

from blockwave.errors import VoiceError
from blockwave.voice import Voice, write_atomically

XVECTOR, MEL = np.arange(192, dtype=np.float32), np.full((7, 80), -5.0, np.float32)
finite = st.floats(-100, 100, width=32)
text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@settings(max_examples=25)
@given(
    text.filter(str.strip),
    arrays(np.float32, st.integers(1, 9), elements=finite),
    arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=finite),
    st.dictionaries(text.filter(lambda key: key not in ("name", "format")), text, max_size=3),
)
def test_a_file_gives_back_what_was_saved(tmp_path_factory, name, xvector, mel, info):
    path = tmp_path_factory.mktemp("voices") / "sub" / "v.safetensors"
    voice = Voice(name, xvector, mel, info)
    assert voice.save(path) == path
    loaded = Voice.load(path)
    assert (loaded.name, dict(loaded.info)) == (name, info)
    np.testing.assert_array_equal(loaded.xvector, xvector)
    np.testing.assert_array_equal(loaded.reference_mel, mel)
    assert [file.name for file in path.parent.iterdir()] == ["v.safetensors"]


@pytest.mark.parametrize("wrap", [torch.from_numpy, lambda a: torch.from_numpy(a).bfloat16(), np.float64, np.asarray])
def test_tensors_and_other_floats_become_float32(wrap):
    voice = Voice("a", wrap(XVECTOR), wrap(MEL))
    assert voice.xvector.dtype == voice.reference_mel.dtype == np.float32
    assert voice.xvector.shape == (192,)
    np.testing.assert_allclose(voice.xvector, XVECTOR, rtol=2**-8)


def test_a_leading_axis_of_one_is_dropped():
    voice = Voice("a", XVECTOR[None], MEL[None])
    assert (voice.xvector.shape, voice.reference_mel.shape) == ((192,), (7, 80))


def test_a_strided_reference_is_stored_in_order(tmp_path):
    mel = np.arange(21.0, dtype=np.float32).reshape(3, 7).T
    path = Voice("a", XVECTOR, mel).save(tmp_path / "v.safetensors")
    np.testing.assert_array_equal(Voice.load(path).reference_mel, mel)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", XVECTOR, MEL), r"voice: got name '', expected text"),
        ((3, XVECTOR, MEL), r"voice: got name 3, expected text"),
        (("a", MEL, MEL), r"got xvector of shape \[7, 80\], expected \[D\]"),
        (("a", XVECTOR, XVECTOR), r"got reference_mel of shape \[192\], expected \[T, M\], frames first"),
        (("a", XVECTOR[:0], MEL), r"got xvector of shape \[0\], expected \[D\]"),
        (("a", XVECTOR, MEL[:0]), r"got reference_mel of shape \[0, 80\]"),
        (("a", np.stack([XVECTOR] * 2), MEL), r"got xvector of shape \[2, 192\]"),
        (("a", ["x"], MEL), r"got xvector of type <U1, expected numbers"),
        (("a", XVECTOR * 1j, MEL), r"got xvector of type complex\d+, expected numbers"),
        (("a", np.full(192, np.inf), MEL), r"xvector holds NaN or infinity, expected finite numbers"),
        (("a", XVECTOR, MEL * np.nan), r"reference_mel holds NaN or infinity"),
        (("a", XVECTOR, MEL, {"takes": 3}), r"got info \{'takes': 3\}, expected text under names other than format"),
        (("a", XVECTOR, MEL, {"name": "b"}), r"got info .*, expected text under names other than format and name"),
    ],
)
def test_what_is_no_voice_is_refused(arguments, message):
    with pytest.raises(VoiceError, match=message):
        Voice(*arguments)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(VoiceError, match=r"voice .*gone\.safetensors: no such file; expected a voice in safetensors"):
        Voice.load(tmp_path / "gone.safetensors")
    with pytest.raises(VoiceError, match="no such file"):
        Voice.load(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"RIFF....WAVE", b"\xff" * 64, b"\x80\x04K\x01.", b"\x10" + b"\0" * 7 + b"{}"]
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "v.safetensors"
    path.write_bytes(content)
    with pytest.raises(VoiceError, match=r"not a safetensors file \(.*\); write it with Voice\.save"):
        Voice.load(path)


def test_a_cut_file_is_refused(tmp_path):
    path = Voice("a", XVECTOR, MEL).save(tmp_path / "v.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(VoiceError, match="not a safetensors file"):
        Voice.load(path)


def test_other_arrays_are_no_voice(tmp_path):
    save_numpy({"xvector": XVECTOR, "mel": MEL}, tmp_path / "v.safetensors")
    with pytest.raises(VoiceError, match=r"got arrays \['mel', 'xvector'\], expected xvector and reference_mel"):
        Voice.load(tmp_path / "v.safetensors")


def test_bfloat16_arrays_are_refused_by_name(tmp_path):
    tensors = {"xvector": torch.ones(192).bfloat16(), "reference_mel": torch.ones(7, 80)}
    save_torch(tensors, tmp_path / "v.safetensors")
    with pytest.raises(VoiceError, match=r"got arrays of \['BF16', 'F32'\], expected F32; write it with Voice\.save"):
        Voice.load(tmp_path / "v.safetensors")


def test_a_bad_array_in_a_file_is_refused(tmp_path):
    save_numpy({"xvector": XVECTOR, "reference_mel": MEL * np.inf}, tmp_path / "v.safetensors", {"name": "Ann"})
    with pytest.raises(VoiceError, match="voice Ann: reference_mel holds NaN or infinity"):
        Voice.load(tmp_path / "v.safetensors")


def test_a_file_without_a_name_is_called_after_itself(tmp_path):
    save_numpy({"xvector": XVECTOR, "reference_mel": MEL}, tmp_path / "ann.safetensors")
    assert Voice.load(tmp_path / "ann.safetensors").name == "ann"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "v"
    write_atomically(path, b"old")

    def full_disk(self, target):
        raise OSError("no space left")

    monkeypatch.setattr(type(path), "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("v", b"old")]
