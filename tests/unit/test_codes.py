# SPDX-License-Identifier: Apache-2.0
"""Codes in: what is legal, what is stripped, what each refusal says; exact arithmetic of codes, frames and samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from blockwave.codes import (
    QWEN2_5_OMNI,
    CodeClock,
    CodeReader,
    Family,
    as_integers,
    check_codes,
    check_duration,
    is_batch,
)
from blockwave.errors import CodesError, OptionError

NUM_EMBEDS = 8193
PLAIN = Family("other")
CLOCK = CodeClock(frames_per_code=2, samples_per_frame=240, block_frames=24, sample_rate=24_000)

ordinary = st.lists(st.integers(0, 8191), min_size=1, max_size=60)
specials = st.lists(st.sampled_from(sorted(QWEN2_5_OMNI.special)), max_size=4)


def check(codes, family=QWEN2_5_OMNI, num_embeds=NUM_EMBEDS, **options):
    return check_codes(codes, num_embeds, family, **options)


@given(ordinary, st.booleans(), st.sampled_from([None, *sorted(QWEN2_5_OMNI.ends)]), specials)
def test_what_the_talker_adds_is_stripped_and_nothing_else(values, begins, end, tail):
    given_ids = [QWEN2_5_OMNI.begin] * begins + values + ([] if end is None else [end, *tail])
    codes = check(given_ids)
    assert codes.values.tolist() == values
    assert codes.values.dtype == np.int64
    assert (codes.ended, codes.num_cut, len(codes)) == (end is not None, 0, len(values))


@given(ordinary, st.integers(1, 80))
def test_a_maximum_cuts_the_end_and_says_how_much(values, max_codes):
    codes = check(values, max_codes=max_codes)
    assert codes.values.tolist() == values[:max_codes]
    assert codes.num_cut == max(0, len(values) - max_codes)


@given(ordinary, st.data(), st.booleans())
def test_an_illegal_id_is_named_with_its_position(values, data, begins):
    illegal = st.one_of(st.integers(-(2**63), -1), st.integers(NUM_EMBEDS + 1, 2**63 - 1))
    bad = data.draw(illegal.filter(lambda value: value not in QWEN2_5_OMNI.ends))
    at = data.draw(st.integers(0 if begins or bad != QWEN2_5_OMNI.begin else 1, len(values)))
    sequence = [QWEN2_5_OMNI.begin] * begins + values[:at] + [bad] + values[at:]
    with pytest.raises(CodesError) as caught:
        check(sequence, where="codes[3]")
    message = str(caught.value)
    assert message.startswith(f"codes[3]: got id {bad} at position {at + begins}, expected 0..{NUM_EMBEDS}")
    assert "special ids of qwen2.5-omni: [8292, 8293, 8294, 8296]" in message


def test_special_ids_belong_to_the_family():
    ids = [8292, 8293, 8294, 8296, 0]
    codes = check(ids, PLAIN, num_embeds=32_769)
    assert codes.values.tolist() == ids
    assert not codes.ended
    with pytest.raises(CodesError, match=r"got id 32770 at position 1, expected 0\.\.32769; check"):
        check([0, 32_770], PLAIN, num_embeds=32_769)


@pytest.mark.parametrize("edge", [0, NUM_EMBEDS])
def test_the_ends_of_the_legal_range_are_legal(edge):
    family = Family("other")
    assert check([edge], family).values.tolist() == [edge]


def test_several_illegal_ids_are_counted():
    with pytest.raises(CodesError, match=r"got id -1 at position 1, expected 0\.\.8193 \(3 such ids in all\)"):
        check([5, -1, 9000, -7])


@pytest.mark.parametrize("end", sorted(QWEN2_5_OMNI.ends))
def test_only_special_ids_may_follow_the_end(end):
    with pytest.raises(CodesError) as caught:
        check([8293, 7, end, 8292, 12])
    assert f"got id 12 at position 4, after the end id {end} at position 2" in str(caught.value)
    assert "cut the sequence where it ends" in str(caught.value)


@pytest.mark.parametrize("empty", [[], (), np.zeros(0, np.int64), torch.zeros(0, dtype=torch.int64)])
def test_an_empty_sequence_is_refused(empty):
    with pytest.raises(CodesError, match="got an empty sequence, expected at least one code"):
        check(empty)


@pytest.mark.parametrize("ids", [[8293], [8292], [8293, 8294, 8292], [8294, 8296]])
def test_nothing_left_after_stripping_is_refused(ids):
    with pytest.raises(CodesError, match=f"nothing left of {len(ids)} ids after removing the special ids"):
        check(ids)


@given(st.lists(st.integers(0, 255), min_size=1, max_size=20))
def test_lists_arrays_and_tensors_of_every_integer_type_are_equal(values):
    kinds = [values, tuple(values), torch.tensor(values), torch.tensor(values, dtype=torch.uint8)]
    kinds += [np.array(values, dtype) for dtype in (np.uint8, np.int16, np.int32, np.uint64)]
    for kind in kinds:
        array = as_integers(kind)
        assert array.dtype == np.int64
        assert array.tolist() == values


def test_rows_stay_rows_and_one_sequence_is_asked_for():
    assert as_integers([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(CodesError, match=r"got shape \[2, 2\], expected one sequence \[N\]"):
        check([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ("1 2 3", r"got text, expected integers; parse the text first"),
        (b"12", r"got text, expected integers"),
        ([[1, 2], [3]], r"rows of unequal length or mixed nesting.*list of sequences"),
        ([1.0, 2.0], r"got float64 values, expected integers"),
        (torch.ones(3), r"got float32 values, expected integers"),
        (torch.ones(3, dtype=torch.bfloat16), r"got bfloat16 values, expected integers"),
        ([True, False], r"got bool values, expected integers"),
        (["7"], r"got <U1 values, expected integers"),
        ([1, None], r"got mixed values, expected integers"),
        (5, r"got shape \[\], expected \[N\] or \[B, N\]; wrap a single code in a list"),
        (np.ones((1, 4, 16), int), r"got shape \[1, 4, 16\].*several codebooks per step \(12 Hz codecs\)"),
        ([1, 2**70], r"got values from 1 to \d+, which do not fit into 64 bits"),
        (np.array([2**63], np.uint64), r"got value 9223372036854775808, which does not fit into 64 bits"),
    ],
)
def test_what_is_no_sequence_of_integers_is_refused(codes, message):
    with pytest.raises(CodesError, match=f"^ids: .*{message}"):
        as_integers(codes, "ids")


@pytest.mark.parametrize(
    ("codes", "batch"),
    [
        ([1, 2], False),
        ([[1], [2, 3]], True),
        ([np.array([1])], True),
        (np.ones(3, int), False),
        (torch.ones((2, 3), dtype=torch.int64), True),
        ([], False),
        ("12", False),
        (5, False),
    ],
)
def test_a_batch_is_told_from_a_sequence(codes, batch):
    assert is_batch(codes) is batch


def test_the_released_rates_are_exact():
    assert (CLOCK.samples_per_code, CLOCK.codes_per_second) == (480, 50.0)
    assert (CLOCK.num_frames(119), CLOCK.num_samples(119), CLOCK.num_blocks(119)) == (238, 57_120, 10)


clocks = st.builds(
    CodeClock, st.integers(1, 8), st.integers(1, 960), st.integers(1, 64), st.sampled_from([16_000, 24_000, 44_100])
)


@given(clocks, st.integers(1, 10**6))
def test_counting_is_consistent(clock, num_codes):
    assert clock.num_samples(num_codes) == clock.num_frames(num_codes) * clock.samples_per_frame
    blocks, frames = clock.num_blocks(num_codes), clock.num_frames(num_codes)
    assert (blocks - 1) * clock.block_frames < frames <= blocks * clock.block_frames
    assert clock.codes_within(clock.duration_s(num_codes)) == num_codes
    assert clock.codes_within(clock.duration_s(num_codes) - 0.5 / clock.sample_rate) == num_codes - 1


@given(st.integers(1, 10**6))
def test_a_maximum_duration_allows_whole_codes(num_codes):
    assert check_duration(CLOCK.duration_s(num_codes), CLOCK) == num_codes
    assert check_duration(CLOCK.duration_s(num_codes) + 0.019, CLOCK) == num_codes


@pytest.mark.parametrize("duration", [0.0, -1.0, 0.019, float("nan"), float("inf")])
def test_a_maximum_duration_below_one_code_is_refused(duration):
    with pytest.raises(OptionError, match=r"max_duration_s: got .*, expected at least one code, 0\.02 s; pass None"):
        check_duration(duration, CLOCK)


def test_no_maximum_duration_is_no_limit():
    assert check_duration(None, CLOCK) is None


@given(st.lists(st.integers(0, 8193), min_size=1, max_size=30), st.booleans(), st.lists(st.integers(0, 7), max_size=12))
def test_pieces_are_read_as_the_whole_is(values, framed, cuts):
    given_codes = [8293, *values, 8294, 8292] if framed else values
    whole = check_codes(given_codes, 8193, QWEN2_5_OMNI)
    reader, parts, start = CodeReader(8193, QWEN2_5_OMNI), [], 0
    for cut in [*cuts, len(given_codes)]:
        parts.append(reader.read(given_codes[start : start + cut]))
        start += cut
    np.testing.assert_array_equal(np.concatenate(parts), whole.values)
    assert reader.ended == whole.ended


def test_positions_count_from_the_start_of_the_stream():
    reader = CodeReader(8193, QWEN2_5_OMNI)
    reader.read([1, 2, 3])
    with pytest.raises(CodesError, match=r"got id 9000 at position 4, expected 0\.\.8193"):
        reader.read([4, 9000])
    reader.read([4, 8294])  # what was refused was not taken in
    with pytest.raises(CodesError, match=r"got id 5 at position 6, after the end id 8294 at position 4; expected only"):
        reader.read([8292, 5])
    assert len(reader.read([8292])) == 0
