# SPDX-License-Identifier: Apache-2.0
"""One bad input among several does not lose the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ..errors import AudioError, CodesError
from .exits import PARTIAL
from .streams import note


class Failures:
    """Reports what is wrong with single inputs and remembers that something was.

    Args:
        several: there are other inputs to go on with; without them an error ends the command as usual.
    """

    def __init__(self, several: bool) -> None:
        self.several, self.count = several, 0

    @contextmanager
    def reported(self, name: str) -> Iterator[None]:
        """Goes on after an error of the input ``name``: codes, or samples that must not become a file."""
        try:
            yield
        except (CodesError, AudioError) as error:
            if not self.several:
                raise
            self.count += 1
            message = str(error)
            note(f"error: {message if name in message else f'{name}: {message}'}")

    def finish(self) -> None:
        """Ends the command with the exit code for partial success where an input failed."""
        if self.count:
            raise typer.Exit(PARTIAL)
