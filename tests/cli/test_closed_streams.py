# SPDX-License-Identifier: Apache-2.0
"""Standard streams that are closed, full, of the wrong kind, or without a reader: an exit code, a line, no traceback.

Real processes, since the interpreter itself takes part: it makes no stream for a closed one and flushes at its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import blockwave
from blockwave import __version__
from tests.cli.conftest import QUICK

SOURCE = Path(blockwave.__file__).parents[1]
BAD, CLOSED, FULL = 3, "Bad file descriptor", "No space left on device"
WARNING = "warning: model: the weights are random; the sound is noise, not speech\n"
NO_FILE = "error: no.json: no such file; expected speech codes\n"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is played by Linux's /dev/full")


@dataclass(frozen=True)
class End:
    code: int
    out: str
    err: str


def start(redirection: str, *args: str, gone: str | None = None) -> End:
    """The command under a shell's redirection. ``gone``: "stdout" or "stderr" is a pipe that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    pipes = {name: writing if name == gone else subprocess.PIPE for name in ("stdout", "stderr")}
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "blockwave.cli", *args],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        text=True,
        **pipes,
    )
    os.close(writing)
    return End(done.returncode, done.stdout or "", done.stderr or "")


def refused(reason: str) -> str:
    return (
        f"error: standard output: cannot be written ({reason}); expected a file, a pipe or a terminal with room for "
        "the result\n"
    )


VERSION = f"blockwave {__version__}\n"


@needs_full
@pytest.mark.parametrize(
    ("redirection", "expected"),
    [
        ("<&-", End(0, VERSION, "")),
        ("2>&-", End(0, VERSION, "")),
        ("2>/dev/full", End(0, VERSION, "")),
        (">&-", End(6, "", refused(CLOSED))),
        (">/dev/full", End(6, "", refused(FULL))),
        ("3</dev/null >&3", End(6, "", refused(CLOSED))),
        (">&- 2>&-", End(6, "", "")),
        (">/dev/full 2>/dev/full", End(6, "", "")),
        ("<&- >&- 2>&-", End(6, "", "")),
    ],
)
def test_a_result(redirection: str, expected: End) -> None:
    assert start(redirection, "--version") == expected


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_an_error_keeps_its_code(redirection: str) -> None:
    end = start(redirection, "speak", "no.json", "-o", "a.wav")
    assert end == End(BAD, "", "" if "2>" in redirection else NO_FILE)


@needs_full
def test_a_text_for_people() -> None:
    """rich writes these itself."""
    for redirection, reason in ((">&-", CLOSED), (">/dev/full", FULL)):
        assert start(redirection, "--help") == End(6, "", f"error: standard output: {reason}\n")
    assert start("<&- >&- 2>&-", "--help") == End(6, "", "")
    assert start("<&- 2>&-", "--help").code == 0


@pytest.mark.parametrize("args", [("--version",), ("--help",), ()])
def test_a_reader_that_went_away(args: tuple[str, ...]) -> None:
    assert start("", *args, gone="stdout") == End(141, "", "")
    assert start("2>&-", *args, gone="stdout") == End(141, "", "")


def test_nobody_hears_the_messages() -> None:
    assert start("", "speak", "no.json", "-o", "a.wav", gone="stderr") == End(BAD, "", "")
    assert start("", "--version", gone="stderr") == End(0, VERSION, "")


def test_no_file_gets_the_number_of_a_closed_stream() -> None:
    """What a library writes to number 1 or 2 would stand in the middle of a sound."""
    script = (
        "import os; from blockwave.cli import main; code = main(['--help'])\n"
        "os._exit(code if os.open(os.devnull, os.O_RDONLY) > 2 else 99)"
    )
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", script]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}).returncode == 6


def speak(redirection: str, *args: str, gone: str | None = None) -> End:
    return start(redirection, "speak", *args, *QUICK, "--model", "model", "--seed", "1", gone=gone)


@pytest.fixture
def usual(run) -> bytes:
    """The sound of ``a.json``, made in this process."""
    assert run("speak", "a.json", "-o", "usual.wav", *QUICK, "--model", "model", "--seed", "1").code == 0
    return Path("usual.wav").read_bytes()


def test_a_file_needs_no_stream(usual: bytes) -> None:
    assert speak("<&- >&- 2>&-", "a.json", "-o", "a.wav") == End(0, "", "")
    assert Path("a.wav").read_bytes() == usual


def test_sound_for_a_closed_stream(place: Path) -> None:
    assert speak(">&-", "a.json", "-o", "-") == End(6, "", WARNING + refused(CLOSED))


@pytest.mark.full
@needs_full
def test_sound_that_nobody_takes(place: Path) -> None:
    assert speak(">/dev/full", "a.json", "-o", "-") == End(6, "", WARNING + refused(FULL))
    assert speak("", "a.json", "-o", "-", gone="stdout") == End(141, "", WARNING)
    assert speak(">&- 2>&-", "a.json", "-o", "-") == End(6, "", "")


@pytest.mark.full
@needs_full
def test_a_report_that_nobody_takes_costs_no_sound(usual: bytes) -> None:
    for redirection, gone, code in ((">&- 2>&-", None, 6), (">/dev/full", None, 6), ("", "stdout", 141)):
        assert speak(redirection, "a.json", "-o", "a.wav", "--json", gone=gone).code == code
        assert Path("a.wav").read_bytes() == usual
        Path("a.wav").unlink()
    for redirection, gone in ((">/dev/full 2>/dev/full", None), ("", "stderr")):
        assert speak(redirection, "a.json", "-o", "a.wav", gone=gone) == End(0, "", "")
        assert Path("a.wav").read_bytes() == usual
        Path("a.wav").unlink()


@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        ("<&-", "error: standard input: got nothing, expected speech codes\n"),
        ("3>>out <&3", "error: standard input: cannot be read (Bad file descriptor); expected speech codes\n"),
    ],
)
@pytest.mark.parametrize("args", [("-o", "a.wav"), pytest.param(("-o", "-"), marks=pytest.mark.full)])
def test_no_codes_to_read(place: Path, redirection: str, said: str, args: tuple[str, ...]) -> None:
    assert speak(redirection, "-", *args) == End(BAD, "", said)
    assert not Path("a.wav").exists()


def test_no_sound_to_read(place: Path) -> None:
    end = start("3>>out <&3", "encode", "-")
    assert end == End(6, "", "error: standard input: cannot be read (Bad file descriptor); expected a sound\n")
