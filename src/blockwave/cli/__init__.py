# SPDX-License-Identifier: Apache-2.0
"""The ``blockwave`` command. Only this room knows typer and rich; torch is imported by the commands that compute."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from ..errors import BlockwaveError
from .exits import CLOSED_PIPE, INTERRUPTED, MISSING, OUTPUT, USAGE, exit_code, one_line
from .reopen import open_closed_streams

# How often a thread of an operation looks for its next piece of work before it sleeps (libgomp's manual, section 4).
# libgomp's own 300,000 cost an order of magnitude on a machine with other work: threads wait, on their cores, for one
# that has lost its core. Read once, when torch is loaded.
SHORT_WAITS = ("GOMP_SPINCOUNT", "1000")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    Args:
        argv: arguments without the program's name; None for those of the process.
    """
    open_closed_streams()
    try:
        import rich  # noqa: F401
        import typer
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("rich", "typer"):
            raise
        advice = 'run: pip install "blockwave[cli]"'
        return _fail(f"the command line needs {error.name}, which is not installed; {advice}", MISSING)
    os.environ.setdefault(*SHORT_WAITS)
    from .app import app
    from .streams import let_go

    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    # click's UsageError, wherever this version of typer keeps it.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        code = app(arguments, prog_name="blockwave", standalone_mode=False)
    except BlockwaveError as error:
        return _fail(error, exit_code(error))
    except usage_error as error:
        return _fail(f"{error.format_message()} See --help.", USAGE)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except OSError as error:
        if error.filename is None:
            let_go()
        return _fail(f"{error.filename or 'standard output'}: {error.strerror or error}", OUTPUT)
    except SystemExit as end:
        # rich ends the program itself where the reader of a text has gone.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return CLOSED_PIPE
    if code == INTERRUPTED:
        return _fail("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _fail(message: object, code: int) -> int:
    # Where standard error cannot be written either, the exit code is all that is left to say.
    with suppress(OSError):
        print(f"error: {one_line(message)}", file=sys.stderr)
    return code
