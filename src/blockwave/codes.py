# SPDX-License-Identifier: Apache-2.0
"""Speech codes: what is legal, where a sequence ends, and how codes count as frames and samples.

Needs numpy only. Which ids are special belongs to a model family, never to the engine: in one family
8292 ends a sequence, in another it is an ordinary code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .errors import CodesError, OptionError

_LONGEST_S = 1e9  # thirty years: beyond any use, within exact arithmetic


@dataclass(frozen=True)
class Family:
    """The ids of a model family's talker that are not speech.

    Attributes:
        name: the family's name, as stored beside codes.
        begin: id that may stand once at the start and is dropped, or None.
        ends: ids that end a sequence.
        special: all ids that may follow the end (padding and the like); includes ``begin`` and ``ends``.
    """

    name: str
    begin: int | None = None
    ends: frozenset[int] = frozenset()
    special: frozenset[int] = frozenset()


# Source: talker_config of Qwen/Qwen2.5-Omni-7B (tts_codec_{pad,start,end,mask}_token_id) and
# Qwen2_5OmniForConditionalGeneration.generate in transformers (talker_eos_token_id = [8292, 8294]).
QWEN2_5_OMNI = Family(
    "qwen2.5-omni",
    begin=8293,
    ends=frozenset({8292, 8294}),
    special=frozenset({8292, 8293, 8294, 8296}),
)


@dataclass(frozen=True)
class Codes:
    """Checked codes of one request.

    Attributes:
        values: int64 [N], every one a row of the checkpoint's embedding, N >= 1.
        ended: an end id of the family was seen (False where a token limit cut the talker short).
        num_cut: codes that a maximum duration removed from the end.
    """

    values: np.ndarray
    ended: bool
    num_cut: int = 0

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class CodeClock:
    """Exact arithmetic between codes, mel frames, blocks and samples of one checkpoint.

    Attributes:
        frames_per_code: mel frames per code (``repeats``).
        samples_per_frame: product of the vocoder's upsampling rates.
        block_frames: frames per block.
        sample_rate: Hz.
    """

    frames_per_code: int
    samples_per_frame: int
    block_frames: int
    sample_rate: int

    @property
    def samples_per_code(self) -> int:
        return self.frames_per_code * self.samples_per_frame

    @property
    def codes_per_second(self) -> float:
        return self.sample_rate / self.samples_per_code

    def num_frames(self, num_codes: int) -> int:
        return num_codes * self.frames_per_code

    def num_samples(self, num_codes: int) -> int:
        return num_codes * self.samples_per_code

    def num_blocks(self, num_codes: int) -> int:
        return -(-self.num_frames(num_codes) // self.block_frames)

    def duration_s(self, num_codes: int) -> float:
        return self.num_samples(num_codes) / self.sample_rate

    def codes_within(self, duration_s: float) -> int:
        """Whole codes that fit into ``duration_s`` seconds."""
        return math.floor(duration_s * self.sample_rate / self.samples_per_code + 1e-9)


def as_integers(codes: Any, where: str = "codes") -> np.ndarray:
    """Turns a list, tuple, numpy array or torch tensor of integers into int64 [N] or [B, N].

    Raises:
        CodesError: floats, booleans, text, ragged lists, or more than two axes.
    """
    if _holds_truth_values(codes):
        raise CodesError(f"{where}: got bool values, expected integers; convert them where they are made")
    if isinstance(codes, str | bytes):
        raise CodesError(f"{where}: got text, expected integers; parse the text first, e.g. with json.loads")
    if hasattr(codes, "detach"):  # a torch tensor, without importing torch
        if codes.is_floating_point() and codes.numel():  # bfloat16 has no counterpart in numpy
            dtype = str(codes.dtype).removeprefix("torch.")
            raise CodesError(f"{where}: got {dtype} values, expected integers; convert them where they are made")
        codes = codes.detach().cpu().numpy()
    try:
        array = np.asarray(codes)
    except ValueError:
        raise CodesError(
            f"{where}: got rows of unequal length or mixed nesting, expected [N] or [B, N]; "
            "pass unequal sequences as a list of sequences"
        ) from None
    except TypeError as error:
        raise CodesError(f"{where}: got values that are no array ({error}); expected integers [N]") from None
    if array.size == 0:
        return np.zeros((0,) * max(array.ndim, 1), np.int64) if array.ndim < 2 else array.astype(np.int64)
    if array.dtype == object and all(isinstance(value, int) for value in array.flat):
        low, high = min(array.flat), max(array.flat)
        raise CodesError(f"{where}: got values from {low} to {high}, which do not fit into 64 bits; expected code ids")
    if array.dtype.kind not in "iu":
        raise CodesError(
            f"{where}: got {_dtype_name(array)} values, expected integers; convert them where they are made"
        )
    if array.ndim == 0 or array.ndim > 2:
        hint = (
            "codes of several codebooks per step (12 Hz codecs) belong to another decoder"
            if array.ndim > 2
            else "wrap a single code in a list"
        )
        raise CodesError(f"{where}: got shape {list(array.shape)}, expected [N] or [B, N]; {hint}")
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise CodesError(f"{where}: got value {array.max()}, which does not fit into 64 bits; expected code ids")
    return array.astype(np.int64)


def check_codes(
    codes: Any,
    num_embeds: int,
    family: Family,
    *,
    max_codes: int | None = None,
    where: str = "codes",
) -> Codes:
    """Strips what the family's talker adds, checks every id, and says what was done.

    Args:
        codes: integers [N]: list, numpy or torch.
        num_embeds: highest legal id; the embedding has rows 0..num_embeds.
        family: whose special ids apply.
        max_codes: keep at most so many codes; the result's ``num_cut`` says how many were dropped.
        where: how messages name the sequence.

    Raises:
        CodesError: nothing left to decode, a wrong shape or type, or an illegal id (value, position and range named).
    """
    given = as_integers(codes, where)
    if given.ndim == 1 and len(given) == 0:
        raise CodesError(f"{where}: got an empty sequence, expected at least one code")
    reader = CodeReader(num_embeds, family)
    array = reader.read(given, where)
    if len(array) == 0:
        raise CodesError(
            f"{where}: nothing left of {len(given)} ids after removing the special ids of {family.name}, "
            "expected at least one speech code"
        )
    kept = len(array) if max_codes is None else min(len(array), max_codes)
    return Codes(array[:kept], reader.ended, len(array) - kept)


class CodeReader:
    """Checks codes that come in pieces, by the rules of :func:`check_codes`.

    Args:
        num_embeds: highest legal id.
        family: whose special ids apply.
        limit: most speech codes in all, what the checkpoint has positions for; None for no limit.
    """

    def __init__(self, num_embeds: int, family: Family, limit: int | None = None) -> None:
        self.num_embeds, self.family, self.limit = num_embeds, family, limit
        self._num_read = self._num_codes = 0
        self._end: tuple[int, int] | None = None  # id and position of the first end

    @property
    def ended(self) -> bool:
        """An end id was seen; only special ids may follow."""
        return self._end is not None

    def read(self, codes: Any, where: str = "codes") -> np.ndarray:
        """The speech codes int64 [n] of a piece of any length; nothing is taken in where it raises.

        Raises:
            CodesError: a wrong shape or type, an illegal id, or speech after the end; positions count from the start of
                the stream.
        """
        array = as_integers(codes, where)
        if array.ndim != 1:
            raise CodesError(f"{where}: got shape {list(array.shape)}, expected one sequence [N]")
        num_given, offset, end = len(array), self._num_read, self._end
        if offset == 0 and num_given and array[0] == self.family.begin:
            array, offset = array[1:], 1
        if end is None:
            ends = np.flatnonzero(np.isin(array, sorted(self.family.ends)))
            cut = int(ends[0]) if len(ends) else len(array)
            end = (int(array[cut]), offset + cut) if len(ends) else None
            array, tail = array[:cut], array[cut + 1 :]
        else:
            cut, array, tail = -1, array[:0], array
        self._refuse_after(tail, end, offset + cut + 1, where)
        self._refuse_illegal(array, offset, where)
        num_codes = self._num_codes + len(array)
        if self.limit is not None and num_codes > self.limit:
            raise CodesError(
                f"{where}: got {num_codes} codes in one stream, expected at most {self.limit}, which is what the "
                "checkpoint's max_position_embeddings allows; ask for any_length=True"
            )
        self._end, self._num_read, self._num_codes = end, self._num_read + num_given, num_codes
        return array

    def _refuse_after(self, tail: np.ndarray, end: tuple[int, int] | None, offset: int, where: str) -> None:
        wrong = np.flatnonzero(~np.isin(tail, sorted(self.family.special)))
        if end is not None and len(wrong):
            i = int(wrong[0])
            raise CodesError(
                f"{where}: got id {tail[i]} at position {i + offset}, after the end id {end[0]} at position {end[1]}; "
                f"expected only special ids of {self.family.name} there; cut the sequence where it ends"
            )

    def _refuse_illegal(self, array: np.ndarray, offset: int, where: str) -> None:
        illegal = np.flatnonzero((array < 0) | (array > self.num_embeds))
        if len(illegal):
            i, family = int(illegal[0]), self.family
            more = f" ({len(illegal)} such ids in all)" if len(illegal) > 1 else ""
            special = f"; special ids of {family.name}: {sorted(family.special)}" if family.special else ""
            raise CodesError(
                f"{where}: got id {array[i]} at position {i + offset}, expected 0..{self.num_embeds}{more}{special}; "
                "check that the codes were made for this checkpoint"
            )


def check_duration(max_duration_s: float | None, clock: CodeClock) -> int | None:
    """The number of codes that a maximum duration allows, or None for no limit."""
    if max_duration_s is None:
        return None
    shortest = clock.duration_s(1)
    is_number = isinstance(max_duration_s, Real) and not isinstance(max_duration_s, bool)
    if not (is_number and shortest <= max_duration_s <= _LONGEST_S):
        raise OptionError(
            f"max_duration_s: got {max_duration_s}, expected at least one code, {shortest} s; pass None for no limit"
        )
    return clock.codes_within(max_duration_s)


def is_batch(codes: Any) -> bool:
    """Whether ``codes`` holds several sequences: a list of sequences, or an array [B, N]."""
    if isinstance(codes, str | bytes):
        return False
    ndim = getattr(codes, "ndim", None)
    if ndim is not None:
        return int(ndim) == 2 and len(codes) > 0
    if isinstance(codes, Sequence) and len(codes) > 0:
        return all(isinstance(item, Sequence) or getattr(item, "ndim", 0) >= 1 for item in codes)
    return False


def _holds_truth_values(codes: Any) -> bool:
    """Whether a list mixes True and False with its numbers, which numpy would count as 1 and 0."""
    return isinstance(codes, list | tuple) and any(isinstance(code, bool | np.bool_) for code in codes)


def _dtype_name(array: np.ndarray) -> str:
    return "mixed" if array.dtype == object else str(array.dtype)
