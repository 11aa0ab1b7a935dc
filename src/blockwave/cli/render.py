# SPDX-License-Identifier: Apache-2.0
"""Inputs through the model, a few together, each result delivered as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..engine import Token2Wav
from ..errors import AudioError
from ..speech import Speech
from .delivery import deliver
from .failures import Failures
from .jobs import Job
from .progress import progress

Entry = tuple[Job, np.ndarray]


def render(
    model: Token2Wav, entries: Sequence[Entry], batch: int, settings: dict[str, Any], failures: Failures, json: bool
) -> None:
    """Renders and delivers ``entries`` (job, codes), ``batch`` at a time, with one set of options for all."""
    with progress(len(entries)) as advance:
        for start in range(0, len(entries), batch):
            group = entries[start : start + batch]
            for job, speech in _speeches(model, group, settings, failures):
                with failures.reported(job.name):
                    deliver(job, speech, json)
            advance(len(group))


def _speeches(
    model: Token2Wav, group: Sequence[Entry], settings: dict[str, Any], failures: Failures
) -> Iterator[tuple[Job, Speech]]:
    try:
        speeches = model([codes for _, codes in group], **settings)
    except AudioError:
        if len(group) == 1:
            with failures.reported(group[0][0].name):
                raise
            return
        # Not a number somewhere in the batch: alone, each of the others still gets its sound.
        for entry in group:
            yield from _speeches(model, [entry], settings, failures)
        return
    yield from zip((job for job, _ in group), speeches, strict=True)
