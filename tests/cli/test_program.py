# SPDX-License-Identifier: Apache-2.0
"""The program around the commands: help, exit codes, interrupts, pipes, missing packages, start-up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import blockwave
from blockwave import errors
from blockwave.cli import exits, main

SOURCE = Path(blockwave.__file__).parents[1]


def python(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that finds the package."""
    variables = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "100", **environment}
    return subprocess.run([sys.executable, *args], env=variables, capture_output=True, text=True)


@pytest.mark.parametrize("args", ["--help", "", "--version", "speak --help", "voices --help", "speak no.json -o a.wav"])
def test_help_and_early_errors_do_not_wait_for_torch(args):
    script = f"import sys; from blockwave.cli import main; main({args.split()!r}); print('torch' in sys.modules)"
    done = python("-c", script)
    assert done.returncode == 0
    assert done.stdout.endswith("False\n")


def test_help_names_commands_and_exit_codes(run):
    text = " ".join(run("--help").out.decode().split())
    for command in ("speak", "voices", "info", "doctor", "make-checkpoint", "--install-completion"):
        assert command in text
    for code, meaning in exits.MEANINGS.items():
        assert f"{code} {meaning}" in text
    assert run().out == run("--help").out


def test_every_kind_of_error_has_an_exit_code():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.BlockwaveError]
    codes = {kind.__name__: exits.exit_code(kind("x")) for kind in kinds}
    assert codes == {
        "CodesError": 3,
        "VoiceError": 4,
        "OptionError": 2,
        "ConfigError": 5,
        "CheckpointError": 5,
        "AudioError": 6,
        "MissingExtraError": 7,
    }
    assert set(codes.values()) <= exits.MEANINGS.keys()


def test_messages_are_one_line_and_cannot_steer_the_terminal():
    assert exits.one_line("a\n  b: 1\n\n  c\r") == "a; b: 1; c"
    assert exits.one_line("\x1b[31m\x07é\u202e") == "\\x1b[31m\\x07é\\u202e"


def test_many_lines_become_one(run, place, checkpoint):
    """A checkpoint that lacks tensors is one line with all their names."""
    from safetensors.torch import load_file, save_file

    weights = load_file(checkpoint / "model.safetensors")
    dropped = sorted(name for name in weights if name.endswith(("conv_post.weight", "proj_out.bias")))
    Path("half").mkdir()
    save_file({name: value for name, value in weights.items() if name not in dropped}, "half/model.safetensors")
    for name in ("config.json", "spk_dict.pt"):
        Path("half", name).symlink_to(checkpoint / name)
    result = run("speak", "a.json", "-o", "a.wav", "-m", "half")
    assert (result.code, result.out) == (5, b"")
    _, error = result.err.splitlines()
    assert error.startswith("error: half: the tensors do not fit: 2 missing; ")
    assert all(name.removeprefix("token2wav.") in error for name in dropped)


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, capsys, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["--help"]) == 7
    message = f'error: the command line needs {module}, which is not installed; run: pip install "blockwave[cli]"\n'
    assert capsys.readouterr() == ("", message)


def test_interrupt(run, place, monkeypatch):
    def interrupt(path: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blockwave.cli.jobs.load_codes", interrupt)
    result = run("speak", "a.json", "a.json", "-o", "out/")
    assert result.code == 2  # two inputs of one name are refused before
    result = run("speak", "a.json", "-o", "a.wav")
    assert (result.code, result.out, result.err) == (130, b"", "error: interrupted\n")


def test_a_reader_that_went_away():
    reading, writing = os.pipe()
    os.close(reading)
    variables = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "blockwave.cli", "--version"]
    done = subprocess.run(command, env=variables, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_fault_of_the_program_keeps_its_traceback(run, monkeypatch):
    monkeypatch.setattr("blockwave.cli.jobs.load_codes", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("speak", "a.json", "-o", "a.wav")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    script = python("-m", "blockwave.cli", _BLOCKWAVE_COMPLETE=f"source_{shell}")
    assert (script.returncode, script.stderr) == (0, "")
    assert "blockwave" in script.stdout


def test_completion_answers():
    done = python(
        "-m", "blockwave.cli", _BLOCKWAVE_COMPLETE="complete_bash", COMP_WORDS="blockwave make", COMP_CWORD="1"
    )
    assert done.stdout.split() == ["make-checkpoint"]
    words = {"COMP_WORDS": "blockwave speak --format f", "COMP_CWORD": "3"}
    assert python("-m", "blockwave.cli", _BLOCKWAVE_COMPLETE="complete_bash", **words).stdout.split() == ["flac"]


@pytest.mark.target
def test_help_answers_at_once():
    """Needs an idle machine. Interpreter, typer and rich take 0.3 s, torch would take 2 s more."""
    python("-m", "blockwave.cli", "--help")
    started = time.perf_counter()
    python("-m", "blockwave.cli", "--help")
    assert time.perf_counter() - started < 0.8
