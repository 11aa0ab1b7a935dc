# SPDX-License-Identifier: Apache-2.0
"""How the program ends: one exit code for every kind of failure, one line for every message."""

from __future__ import annotations

from ..errors import (
    AudioError,
    BlockwaveError,
    CheckpointError,
    CodesError,
    ConfigError,
    MissingExtraError,
    OptionError,
    VoiceError,
)

USAGE, CODES, VOICE, CHECKPOINT, OUTPUT, MISSING, PARTIAL, DIFFERENT = range(2, 10)
INTERRUPTED, CLOSED_PIPE = 130, 141

MEANINGS = {
    0: "done",
    1: "a fault of the program itself, please report it",
    USAGE: "an option or argument that cannot be used",
    CODES: "speech codes that cannot be decoded",
    VOICE: "a voice that is unknown or malformed",
    CHECKPOINT: "a checkpoint that cannot be read",
    OUTPUT: "sound that cannot be read or written",
    MISSING: "an optional package that is not installed",
    PARTIAL: "of several inputs some failed, each with its message, and the others are done",
    DIFFERENT: "verify found a difference beyond the bar",
    INTERRUPTED: "interrupted",
    CLOSED_PIPE: "the reader of standard output went away",
}

_KINDS: dict[type[BlockwaveError], int] = {
    OptionError: USAGE,
    CodesError: CODES,
    VoiceError: VOICE,
    CheckpointError: CHECKPOINT,
    ConfigError: CHECKPOINT,
    AudioError: OUTPUT,
    MissingExtraError: MISSING,
}

EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + "."


def exit_code(error: BlockwaveError) -> int:
    """The exit code of an error's kind."""
    return next((code for kind, code in _KINDS.items() if isinstance(error, kind)), 1)


def one_line(text: object) -> str:
    """A message on one line: line breaks become "; ", and nothing in a file's name can steer the terminal."""
    joined = "; ".join(line.strip() for line in str(text).splitlines() if line.strip())
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in joined)
