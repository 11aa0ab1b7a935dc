# SPDX-License-Identifier: Apache-2.0
"""When a player that starts so late runs dry. Plain arithmetic on the times at which pieces of sound came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """Samples ``first_sample .. first_sample + num_samples`` of a stream, there from ``at_s`` on."""

    at_s: float
    first_sample: int
    num_samples: int


def smallest_delay_s(pieces: Sequence[Piece], sample_rate: int) -> float:
    """Seconds after the first piece at which playback has to start so that it never runs dry; 0: at once."""
    sounding = [piece for piece in pieces if piece.num_samples]
    first = sounding[0]
    return max(p.at_s - first.at_s - (p.first_sample - first.first_sample) / sample_rate for p in sounding)


def underruns(pieces: Sequence[Piece], sample_rate: int, delay_s: float) -> tuple[int, float]:
    """How often playback runs dry, and for how many seconds in all.

    The player starts ``delay_s`` after the first piece, plays what there is, and goes on as soon as more comes.
    """
    sounding = [piece for piece in pieces if piece.num_samples]
    dry_at_s = sounding[0].at_s + delay_s  # when all that has come so far has been played
    count, silent_s = 0, 0.0
    for piece in sounding:
        if piece.at_s > dry_at_s + 1e-9:
            count, silent_s, dry_at_s = count + 1, silent_s + piece.at_s - dry_at_s, piece.at_s
        dry_at_s += piece.num_samples / sample_rate
    return count, silent_s


@dataclass(frozen=True)
class Chunking:
    """Which codes an emission needs.

    Attributes:
        first_codes, chunk_codes: of the first emission and of each later one.
        ahead_codes: look-ahead.
        num_codes: of the whole stream.
    """

    first_codes: int
    chunk_codes: int
    ahead_codes: int
    num_codes: int

    def needed(self, emitted_codes: int) -> int:
        """Codes that must have come before the emission can end that holds code number ``emitted_codes``."""
        later = max(0, -(-(emitted_codes - self.first_codes) // self.chunk_codes))
        return min(self.first_codes + later * self.chunk_codes + self.ahead_codes, self.num_codes)
