# SPDX-License-Identifier: Apache-2.0
"""Streams for a process that was started without some (``<&-``, ``>&-``, ``2>&-``)."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Where a standard stream is closed, nothing can be read, writing results fails, and what is said goes nowhere.

    The numbers 0, 1 and 2 are taken first: files opened later would get them, and what some library says there would
    be written into a sound.
    """
    while (number := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(number)
    # Streams stay open for as long as the process.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # its number is open for reading only
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
