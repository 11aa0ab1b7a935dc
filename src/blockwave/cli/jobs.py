# SPDX-License-Identifier: Apache-2.0
"""What ``speak`` has to do: which input becomes which output, decided before anything is read or computed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..audio import Format, choose_format
from ..codes_file import CodesFile, load_codes, parse_codes
from ..errors import AudioError, CodesError, OptionError
from .streams import take

STREAM = "-"


@dataclass(frozen=True)
class Job:
    """One input and its output.

    Attributes:
        source: a file, or "-" for standard input.
        target: the file to write; None for standard output.
        format: how the sound is stored.
        resumes: what an earlier run left whole is kept.
    """

    source: str
    target: Path | None
    format: Format
    resumes: bool = False

    @property
    def name(self) -> str:
        """How messages name the input."""
        return "standard input" if self.source == STREAM else self.source

    @property
    def output(self) -> str:
        """How messages name the output."""
        return "standard output" if self.target is None else str(self.target)

    def read(self) -> CodesFile:
        """The codes, as the input says them.

        Raises:
            CodesError: see :func:`blockwave.codes_file.load_codes`.
        """
        if self.source != STREAM:
            return load_codes(self.source)
        return parse_codes(take(CodesError, "speech codes"), self.name)


def plan(sources: Sequence[str], out: str, asked: str | None) -> list[Job]:
    """One job for each input.

    ``out`` is "-" for standard output, a file for one input, or, with several inputs or a slash at its end, a folder.

    Raises:
        OptionError: inputs and output do not go together.
        AudioError: an unknown format, or a place that cannot be written.
    """
    if sources.count(STREAM) > 1:
        raise OptionError("-: standard input is named twice, expected once")
    if out == STREAM:
        if len(sources) > 1:
            raise OptionError(f"-o -: got {len(sources)} inputs for one stream, expected one; name a folder, -o DIR/")
        if sys.stdout.isatty():
            raise OptionError("-o -: standard output is a terminal, expected a pipe or a file for the sound")
        return [Job(sources[0], None, choose_format(STREAM, asked or "pcm"))]
    place, slash = Path(out), out.endswith(("/", os.sep))
    if len(sources) == 1 and not slash:
        if place.is_dir():
            raise OptionError(f"-o {out}: got a folder, expected a file; say -o {out}/ to write into the folder")
        check_writable(place.parent)
        return [Job(sources[0], place, choose_format(place, asked))]
    if not slash and not place.is_dir():
        raise OptionError(f"-o {out}: got one file for {len(sources)} inputs, expected a folder; say -o DIR/")
    format = choose_format(STREAM, asked or "wav")
    check_writable(place)
    jobs = [Job(source, place / f"{_stem(source)}.{format.name}", format, True) for source in sources]
    taken: dict[Path | None, str] = {}
    for job in jobs:
        if job.target in taken:
            raise OptionError(
                f"{job.name}: would become {job.output}, as {taken[job.target]} would; rename one, or write two folders"
            )
        taken[job.target] = job.name
    return jobs


def _stem(source: str) -> str:
    return "stdin" if source == STREAM else Path(source).stem


def check_writable(folder: Path) -> None:
    """Whether files can appear in ``folder``, which may itself not be there yet; nothing is created."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise AudioError(f"{folder}: cannot be written, {existing} is a file; expected a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise AudioError(f"{folder}: cannot be written, no permission in {existing}; choose another place")
