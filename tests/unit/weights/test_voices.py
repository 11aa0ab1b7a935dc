# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from blockwave import Voice
from blockwave.errors import VoiceError
from blockwave.testing import sized_config
from blockwave.weights.voices import check_voice, find_voice, load_voices


def voice(name: str = "Ada", width: int = 192, frames: int = 20, bins: int = 80) -> Voice:
    return Voice(name, np.ones(width, np.float32), np.full((frames, bins), -5, np.float32))


def entry(frames: int = 9) -> dict[str, object]:
    return {"bos_token": 1, "cond": torch.ones(1, 192), "ref_mel": torch.ones(1, frames, 80)}


def save(folder: Path, content: object) -> Path:
    torch.save(content, folder / "spk_dict.pt")
    return folder


def refused(folder: Path, *texts: str) -> None:
    with pytest.raises(VoiceError) as caught:
        load_voices(folder)
    for text in texts:
        assert text in str(caught.value), str(caught.value)


def test_the_released_layout(single: Path) -> None:
    voices = load_voices(single)
    assert list(voices) == ["Chelsie", "Ethan"]
    stored = torch.load(single / "spk_dict.pt", weights_only=True)
    for name, frames in {"Chelsie": 400, "Ethan": 300}.items():
        assert voices[name].name == name
        assert voices[name].reference_mel.shape == (frames, 80)
        assert np.array_equal(voices[name].xvector, stored[name]["cond"][0].numpy())
        assert np.array_equal(voices[name].reference_mel, stored[name]["ref_mel"][0].numpy())


def test_half_precision_speakers_become_float32(tmp_path: Path) -> None:
    save(tmp_path, {"A": {"cond": torch.ones(1, 192).bfloat16(), "ref_mel": torch.ones(1, 9, 80).half()}})
    assert load_voices(tmp_path)["A"].xvector.dtype == np.float32


def test_no_speakers_no_voices(tmp_path: Path) -> None:
    assert load_voices(tmp_path) == {}


def test_small_files_beside_the_speakers(tmp_path: Path) -> None:
    save(tmp_path, {"Chelsie": entry()})
    voice("Ada").save(tmp_path / "voices" / "ada.safetensors")
    assert list(load_voices(tmp_path)) == ["Chelsie", "Ada"]


def test_two_voices_of_one_name(tmp_path: Path) -> None:
    save(tmp_path, {"Ada": entry()})
    path = voice("ADA").save(tmp_path / "voices" / "x.safetensors")
    refused(tmp_path, f"{path}: got a second voice ADA, beside Ada; expected names that differ", "rename one")


class _Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_with_code_is_refused_and_not_run(tmp_path: Path, zipped: bool) -> None:
    proof = tmp_path / "ran"
    torch.save({"A": _Bomb(proof)}, tmp_path / "spk_dict.pt", _use_new_zipfile_serialization=zipped)
    refused(
        tmp_path,
        "spk_dict.pt: refused, its pickle asks for more than tensors and plain values",
        "loading it would run code from the file",
        "get the file from its original source",
    )
    assert not proof.exists()


def test_a_bare_pickle_with_code_is_refused_and_not_run(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    data = pickle.dumps({"A": _Bomb(proof)})
    (tmp_path / "spk_dict.pt").write_bytes(data)
    refused(tmp_path, "spk_dict.pt: ")
    assert not proof.exists()
    pickle.loads(data)  # the bomb is real
    assert proof.exists()


@pytest.mark.parametrize("content", [b"", b"not a pickle", b"PK\x03\x04 broken"])
def test_a_broken_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "spk_dict.pt").write_bytes(content)
    refused(tmp_path, "spk_dict.pt: ")


def test_a_truncated_file(single: Path, tmp_path: Path) -> None:
    data = (single / "spk_dict.pt").read_bytes()
    (tmp_path / "spk_dict.pt").write_bytes(data[: len(data) // 2])
    refused(tmp_path, "spk_dict.pt: cannot be read", "expected a file written by torch.save; download it again")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([1], "got list, expected a dictionary of speakers; voices come from spk_dict.pt"),
        ({"A": torch.ones(3)}, "speaker 'A' has Tensor, expected cond [1, 192] and ref_mel [1, T, 80]"),
        ({"A": {"cond": torch.ones(1, 192)}}, "speaker 'A' has ['cond'], expected cond"),
        ({3: entry()}, "speaker 3 has"),
        ({"A": entry() | {"cond": [1.0]}}, "speaker 'A' has cond of type list, expected a tensor"),
        ({"A": entry() | {"ref_mel": torch.ones(2, 9, 80)}}, "voice A: got reference_mel of shape [2, 9, 80]"),
        ({"A": entry() | {"cond": torch.full((1, 192), torch.nan)}}, "voice A: xvector holds NaN or infinity"),
    ],
)
def test_another_structure(tmp_path: Path, content: object, text: str) -> None:
    refused(save(tmp_path, content), text)


# Which voice


@pytest.mark.parametrize("name", ["Ethan", "ethan", "ETHAN", " ethan "])
def test_case_does_not_matter(name: str) -> None:
    assert find_voice({"Ada": voice("Ada"), "Ethan": voice("Ethan")}, name, "Ada").name == "Ethan"


def test_the_default_speaks_only_when_none_is_named() -> None:
    voices = {"Ada": voice("Ada"), "Ethan": voice("Ethan")}
    assert find_voice(voices, None, "ada").name == "Ada"


@pytest.mark.parametrize(
    ("voices", "name", "default", "text"),
    [
        (["B", "A"], "C", "A", r"voice: got 'C', expected one of: A, B; voices come from spk_dict\.pt or voices/"),
        (["A"], "", "A", r"voice: got '', expected one of: A"),
        ([], "C", None, r"voice: got 'C', expected one of: none; .* or from Voice\.load\(path\)"),
        (
            ["A"],
            None,
            None,
            r"none named and this checkpoint declares no default, expected one of: A; voices come from",
        ),
        ([], None, "Chelsie", r"none named and the checkpoint's default Chelsie is not among its voices.*none; voices"),
        (["A"], 3, "A", r"voice: got int, expected a name, one of: A"),
    ],
)
def test_no_such_voice(voices: list[str], name, default: str | None, text: str) -> None:
    with pytest.raises(VoiceError, match=text):
        find_voice({each: voice(each) for each in voices}, name, default)


# Does it fit


def test_a_voice_that_fits() -> None:
    config = sized_config().dit
    check_voice(voice(frames=config.speaker.min_frames), config)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (voice(width=512), "voice Ada: got an x-vector of 512 values, expected 192; use a voice made for this"),
        (voice(bins=100), r"got a reference mel of 100 bins, expected 80; make it as \[frames, bins\]"),
        (voice(frames=80, bins=300), "got a reference mel of 300 bins, expected 80; it looks transposed"),
        (
            voice(frames=4),
            "got a reference mel of 4 frames, expected at least 5: the speaker encoder pads by reflection",
        ),
    ],
)
def test_a_voice_that_does_not_fit(made: Voice, text: str) -> None:
    with pytest.raises(VoiceError, match=text):
        check_voice(made, sized_config().dit)
