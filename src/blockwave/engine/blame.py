# SPDX-License-Identifier: Apache-2.0
"""Whose fault a failure is. A thread that runs a batch need not be one of those that the batch was for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .track import Track


@contextmanager
def blamed_on(*tracks: Track) -> Iterator[None]:
    """What fails inside ends these tracks, whose states may be half written; who reads them hears of it.

    The thread that struck it goes on with the work of others, unless it was interrupted itself.
    """
    try:
        yield
    except BaseException as error:
        for track in tracks:
            track.failure = error
        if not isinstance(error, Exception):
            raise
