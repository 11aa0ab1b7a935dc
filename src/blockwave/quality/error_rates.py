# SPDX-License-Identifier: Apache-2.0
"""Word and character errors of what was heard against what was said. The door to jiwer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import MissingExtraError, OptionError
from .words import spoken_words


@dataclass(frozen=True)
class ErrorCounts:
    """Errors are substitutions, deletions and insertions of the alignment with the fewest (Levenshtein 1966).

    Attributes:
        word_errors, words: errors, and words that were said.
        character_errors, characters: the same for characters, spaces counted.
    """

    word_errors: int
    words: int
    character_errors: int
    characters: int


def count_errors(heard: str, said: str) -> ErrorCounts:
    """Errors in ``heard`` against ``said``, both as :func:`~.words.spoken_words`.

    A rate is errors over what was said; those of many sentences are summed before dividing.

    Raises:
        OptionError: nothing was said.
        MissingExtraError: jiwer is not installed.
    """
    jiwer = load_jiwer()
    reference, hypothesis = spoken_words(said), spoken_words(heard)
    if not reference:
        raise OptionError(f"text: got {said!r}, expected words; without them there is no rate of errors")
    words = jiwer.process_words(reference, hypothesis)
    characters = jiwer.process_characters(reference, hypothesis)
    errors, letters = (found.substitutions + found.deletions + found.insertions for found in (words, characters))
    return ErrorCounts(errors, len(reference.split()), letters, len(reference))


def load_jiwer() -> Any:
    """The package jiwer.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import jiwer
    except ImportError:
        raise MissingExtraError(
            'error rates need jiwer, which is not installed; run: pip install "blockwave[quality]"'
        ) from None
    return jiwer
