# SPDX-License-Identifier: Apache-2.0
"""``speak`` with several inputs: a folder that is filled, resumed, and not lost to one bad input."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from blockwave import AudioError
from blockwave.cli.progress import progress
from blockwave.engine import token2wav
from tests.cli import inputs
from tests.cli.conftest import CODES, tree


@pytest.fixture
def three(place):
    """Three inputs of 3, 2 and 14 codes."""
    Path("b.npy").write_bytes(inputs.npy(CODES[:2]))
    Path("c.txt").write_bytes(b"3380 " * 14)
    return "a.json", "b.npy", "c.txt"


def names(lines: list[dict]) -> list[str]:
    return [line["path"] for line in lines]


@pytest.mark.parametrize("format", ["wav", "pcm", "flac", "ogg", "opus", "mp3"])
def test_resume(speak, three, format):
    out = Path("out")
    options = ("-o", "out/", "--json", "--format", format)
    first = speak(*three, *options)
    paths = [f"out/{stem}.{format}" for stem in "abc"]
    assert names(first.lines) == paths
    assert [line["kept"] for line in first.lines] == [False] * 3
    assert tree(out) == {Path(path).name for path in paths}
    # Half done: one is whole, one was cut by something else, one is not there.
    Path(paths[1]).write_bytes(Path(paths[1]).read_bytes()[:-60])
    Path(paths[2]).unlink()
    whole = Path(paths[0]).stat().st_mtime_ns
    second = speak(*three, *options)
    assert {line["path"]: line["kept"] for line in second.lines} == dict(zip(paths, (True, False, False), strict=True))
    assert Path(paths[0]).stat().st_mtime_ns == whole
    third = speak(*three, *options)
    assert [line["kept"] for line in third.lines] == [True] * 3
    assert [line["samples"] for line in third.lines] == [480 * n for n in (3, 2, 14)]
    assert third.err == ""
    forced = speak(*three, *options, "--force")
    assert [line["kept"] for line in forced.lines] == [False] * 3
    assert Path(paths[0]).stat().st_mtime_ns > whole


def test_other_codes_are_not_kept(speak, three):
    speak(*three, "-o", "out/")
    Path("b.npy").write_bytes(inputs.npy(CODES))
    result = speak(*three, "-o", "out/")
    assert [line.split(",")[0] for line in result.err.splitlines()] == [
        "out/a.wav: kept",
        "out/c.wav: kept",
        "warning: model: the weights are random; the sound is noise",
        "out/b.wav: 0.06 s",
    ]


def test_a_folder_that_is_there_needs_no_slash(speak, three):
    Path("out").mkdir()
    assert speak(*three, "-o", "out").code == 0
    assert tree(Path("out")) == {"a.wav", "b.wav", "c.wav"}


def test_one_input_into_a_folder(speak, place):
    assert speak("-", "-o", "new/out/", "--format", "flac", stdin=b"5 6").code == 0
    assert tree(place / "new") == {"out", "out/stdin.flac"}


def test_one_bad_input_does_not_lose_the_others(speak, three, place):
    Path("bad.json").write_bytes(b"[1, 9000]")
    Path("worse.json").write_bytes(b"[")
    result = speak("worse.json", "a.json", "bad.json", "no.npy", *three[1:], "-o", "out/", "--json")
    assert result.code == 8
    assert names(result.lines) == ["out/a.wav", "out/b.wav", "out/c.wav"]
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert [line.split(": ")[1] for line in errors] == ["worse.json", "no.npy", "bad.json"]
    assert tree(place / "out") == {"a.wav", "b.wav", "c.wav"}


def test_all_bad(speak, place):
    result = speak("no.json", "neither.json", "-o", "out/", "--json")
    assert (result.code, result.out, tree(place)) == (8, b"", {"model", "a.json"})
    assert result.err == "".join(
        f"error: {name}.json: no such file; expected speech codes\n" for name in ("no", "neither")
    )


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_samples_that_are_no_numbers_lose_only_themselves(speak, three, place, monkeypatch, batch):
    def refuse(samples: np.ndarray) -> None:
        if len(samples) == 480 * 2:
            raise AudioError("samples: got nan at sample 0")

    monkeypatch.setattr(token2wav, "check_samples", refuse)
    result = speak(*three, "-o", "out/", "--batch", batch, "--json")
    assert (result.code, names(result.lines)) == (8, ["out/a.wav", "out/c.wav"])
    assert "error: b.npy: samples: got nan at sample 0\n" in result.err
    assert tree(place / "out") == {"a.wav", "c.wav"}


def test_batches_sound_the_same(speak, three):
    for batch in (1, 2, 3):
        result = speak(*three, "-o", f"out{batch}/", "--batch", batch, "--seed", 4, "--format", "pcm", "--json")
        assert [line["batch"] for line in result.lines] == {1: [1, 1, 1], 2: [2, 2, 1], 3: [3, 3, 3]}[batch]
    for name in "abc":
        alone, two, three_ = (np.fromfile(f"out{batch}/{name}.pcm", "<i2").astype(int) for batch in (1, 2, 3))
        assert np.abs(alone).max() > 50
        # Equal within float32 rounding, which may turn the last of 16 bits.
        assert max(np.abs(alone - two).max(), np.abs(alone - three_).max()) <= 1


def test_a_bar_only_where_somebody_looks(monkeypatch, capfd):
    with progress(2) as advance:
        advance(2)
    assert capfd.readouterr() == ("", "")
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress(2) as advance:
            advance(1)
            advance(1)
    assert "2/2" in os.read(master, 100_000).decode()
    os.close(master)
    assert capfd.readouterr() == ("", "")
