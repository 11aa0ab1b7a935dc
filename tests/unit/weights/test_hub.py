# SPDX-License-Identifier: Apache-2.0
"""The hub without the hub: an emulated cache for the real library, and a library of our own for its refusals."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import errors

from blockwave.errors import CheckpointError, MissingExtraError, OptionError
from blockwave.weights.hub import EMBEDDED_FOLDER, resolve

NAME = "Example/Tiny-Omni"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(sharded: Path, tmp_path: Path) -> Path:
    """A hub cache as the library lays it out, without the shard of other stages."""
    root = tmp_path / "models--Example--Tiny-Omni"
    snapshot = root / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (root / "blobs").mkdir()
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(COMMIT)
    for i, file in enumerate(sorted(sharded.iterdir())):
        if file.name != "model-00001-of-00004.safetensors":
            shutil.copy(file, root / "blobs" / f"hash{i}")
            (snapshot / file.name).symlink_to(os.path.join("..", "..", "blobs", f"hash{i}"))
    return tmp_path


class Hub:
    """Stands in for hf_hub_download: serves a folder, notes what was asked for, raises what it is told to."""

    def __init__(self, source: Path, target: Path, absent: tuple[str, ...] = ()) -> None:
        self.source, self.target, self.absent = source, target / "snapshots" / COMMIT, absent
        self.asked: list[tuple[str, str | None]] = []
        self.failures: dict[str, Exception] = {}

    def __call__(self, name: str, file: str, *, revision: str | None, **options: object) -> str:
        assert name == NAME
        self.asked.append((file, revision))
        if file in self.failures:
            raise self.failures[file]
        if file in self.absent or not (self.source / file).exists():
            raise failure(errors.EntryNotFoundError)
        self.target.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.source / file, self.target / file)
        return str(self.target / file)


@pytest.fixture
def hub(sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(sharded, tmp_path)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", made)
    return made


def failure(kind: type[Exception], text: str = "x") -> Exception:
    """An error of the library without the answer of a server, whose type depends on the library's version."""
    error = kind.__new__(kind)
    error.args = (text,)
    return error


def test_a_folder_is_itself(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert resolve(single) == single
    assert resolve(str(single)) == single


def test_a_cached_repository_is_found_offline(cache: Path) -> None:
    folder = resolve(NAME, cache_dir=cache, local_files_only=True)
    assert folder == cache / "models--Example--Tiny-Omni" / "snapshots" / COMMIT
    assert resolve(NAME, revision=COMMIT, cache_dir=cache, local_files_only=True) == folder


def test_a_cache_that_lacks_a_shard_says_so(cache: Path) -> None:
    shard = "model-00003-of-00004.safetensors"
    (cache / "models--Example--Tiny-Omni" / "snapshots" / COMMIT / shard).unlink()
    with pytest.raises(CheckpointError, match=f"cannot get {shard} from the hub: it is not in the hub cache"):
        resolve(NAME, cache_dir=cache, local_files_only=True)


def test_an_empty_cache_offline_says_what_to_do(tmp_path: Path) -> None:
    text = (
        f"{NAME}: no such folder, and cannot get config.json from the hub: it is not in the hub cache and could not be "
        "fetched; connect to the network once, or download the checkpoint elsewhere and pass its folder"
    )
    for options in ({"local_files_only": True}, {}):  # the tests run with HF_HUB_OFFLINE
        with pytest.raises(CheckpointError) as caught:
            resolve(NAME, cache_dir=tmp_path, **options)
        assert str(caught.value) == text


def test_only_what_is_needed_is_fetched_from_one_commit(hub: Hub) -> None:
    folder = resolve(NAME, revision="main")
    files = ["config.json", "model.safetensors.index.json"]
    files += [f"model-0000{i}-of-00004.safetensors" for i in (2, 3, 4)] + ["spk_dict.pt"]
    assert hub.asked == [("config.json", "main"), *((file, COMMIT) for file in files[1:])]
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)


def test_a_single_file_without_index(hub: Hub, single: Path) -> None:
    hub.source = single
    folder = resolve(NAME)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "spk_dict.pt"]


def test_a_repository_without_speakers(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    hub.absent = ("spk_dict.pt",)
    with caplog.at_level(logging.WARNING):
        assert not (resolve(NAME) / "spk_dict.pt").exists()
    assert "got no spk_dict.pt; pass a voice of your own" in caplog.text


def test_a_repository_without_safetensors(hub: Hub) -> None:
    hub.absent = ("model.safetensors.index.json", "model.safetensors")
    text = (
        "cannot get model.safetensors.index.json from the hub: the repository has no such file; expected a checkpoint"
    )
    with pytest.raises(CheckpointError, match=text):
        resolve(NAME)


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (failure(errors.RepositoryNotFoundError), "no such public repository; check the spelling"),
        (failure(errors.GatedRepoError), "the repository is gated; accept its terms"),
        (failure(errors.RevisionNotFoundError), "no revision 'v9'; check its name"),
        (failure(errors.LocalEntryNotFoundError), "could not be fetched; connect to the network once"),
        (failure(errors.EntryNotFoundError), "the repository has no such file; expected a checkpoint in safetensors"),
        (failure(errors.HfHubHTTPError, "busy\nmore"), "busy; try again, or download the checkpoint"),
        (failure(errors.HFValidationError, "bad id"), "bad id; try again"),
        (ConnectionError("no route"), "no route; try again"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_refusals_say_what_to_do(hub: Hub, raised: Exception, text: str) -> None:
    hub.failures["config.json"] = raised
    with pytest.raises(CheckpointError) as caught:
        resolve(NAME, revision="v9")
    assert f"{NAME}: no such folder, and cannot get config.json from the hub: " in str(caught.value)
    assert text in str(caught.value)


def test_an_index_that_leaves_the_folder_fetches_nothing_more(hub: Hub, tmp_path: Path) -> None:
    evil = shutil.copytree(hub.source, tmp_path / "evil")
    (evil / "model.safetensors.index.json").write_text('{"weight_map": {"token2wav.x": "../../x"}}')
    hub.source = evil
    with pytest.raises(CheckpointError, match="expected a file name inside the folder"):
        resolve(NAME)
    assert [file for file, _ in hub.asked] == ["config.json", "model.safetensors.index.json"]


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r'not installed; run: pip install "blockwave\[hub\]"'):
        resolve(NAME)


@pytest.mark.parametrize("source", ["no-such-folder", "./a/b", "../x/y", "a/b/c", "~nobody/x", "a/..", "", "a b/c"])
def test_neither_folder_nor_hub_id(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", SimpleNamespace())  # must not be called
    if source == "":
        assert resolve(source) == Path()  # the working folder, as everywhere
        return
    with pytest.raises(CheckpointError, match=r"no such folder, and no hub id such as Qwen/Qwen2\.5-Omni-7B"):
        resolve(source)


def test_a_path_is_never_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="no such folder, and no hub id"):
        resolve(Path("Example") / "Tiny-Omni")


def test_a_file_is_no_folder(single: Path) -> None:
    with pytest.raises(CheckpointError, match=r"got a file, expected the folder that holds it"):
        resolve(single / "model.safetensors")


def test_a_folder_has_no_revision(single: Path) -> None:
    with pytest.raises(OptionError, match="which has no revisions; leave it out or pass a hub id"):
        resolve(single, revision="main")


def test_nothing_named_means_the_embedded_checkpoint() -> None:
    assert resolve() == EMBEDDED_FOLDER
    assert EMBEDDED_FOLDER.is_dir()
