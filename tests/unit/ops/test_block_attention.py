# SPDX-License-Identifier: Apache-2.0
"""Block attention against dense masked attention in float64, bounded by what plain PyTorch itself loses."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from blockwave.blocks import BlockTable
from blockwave.errors import OptionError
from blockwave.ops.block_attention import BlockLayout, block_attention
from blockwave.testing import excess_error
from tests.attention import BLOCK, REACHES, SOUND, alone, dense, exact, fused, together

LENGTHS = (*range(1, 61), 96, 101, 500)


@cache
def sequences():
    return [fused(length, seed=length) for length in LENGTHS]


@cache
def yardsticks(back, ahead):
    return [(dense(*qkv, BLOCK, back, ahead), exact(*qkv, BLOCK, back, ahead)) for qkv in sequences()]


@pytest.fixture
def poisoned():
    """New memory is NaN until it is written."""
    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(before[0])
    torch.utils.deterministic.fill_uninitialized_memory = before[1]


@pytest.mark.parametrize("reach", [(0, 0), (1, 0), (0, 1)], ids=["own", "back", "ahead"])
@pytest.mark.parametrize("frames", [10, 96, 101])
def test_the_published_nine_cases(frames, reach):
    q, k, v = fused(frames, heads=16, width=64, seed=frames)
    plain, truth = dense(q, k, v, BLOCK, *reach), exact(q, k, v, BLOCK, *reach)
    assert excess_error(alone(q, k, v, *reach), plain, truth, floor_ulps=0) <= SOUND


@pytest.mark.parametrize("reach", REACHES)
def test_every_length_alone(reach):
    outs = [alone(*qkv, *reach) for qkv in sequences()]
    errors = {t: excess_error(out, *y) for t, out, y in zip(LENGTHS, outs, yardsticks(*reach), strict=True)}
    assert {t: error for t, error in errors.items() if error > SOUND} == {}


@pytest.mark.parametrize("reach", REACHES)
def test_every_length_in_one_packed_call(reach):
    outs = together(sequences(), *reach)
    errors = {t: excess_error(out, *y) for t, out, y in zip(LENGTHS, outs, yardsticks(*reach), strict=True)}
    assert {t: error for t, error in errors.items() if error > SOUND} == {}


WRONG = [(reach, (reach[0] + b, reach[1] + a)) for reach in REACHES for b, a in ((1, 0), (-1, 0), (0, 1), (0, -1))]


@pytest.mark.parametrize(("reach", "other"), [pair for pair in WRONG if min(pair[1]) >= 0])
def test_a_reach_off_by_one_exceeds_the_bound(reach, other):
    """The comparison above can fail: it does for every length at which the wrong reach sees other blocks."""
    widest = max(*reach, *other)
    differing = [t for t in LENGTHS if t > widest * BLOCK]
    outs = dict(zip(LENGTHS, together(sequences(), *other), strict=True))
    expected = dict(zip(LENGTHS, yardsticks(*reach), strict=True))
    assert min(excess_error(outs[t], *expected[t]) for t in differing) > 1000 * SOUND


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 70), min_size=1, max_size=6),
    st.integers(1, 30),
    st.integers(0, 4) | st.just(10**9),
    st.integers(0, 4) | st.just(10**9),
    st.randoms(use_true_random=False),
)
def test_any_lengths_any_block_any_reach(lengths, block, back, ahead, random):
    qkvs = [fused(t, heads=2, width=8, seed=random.randrange(2**31)) for t in lengths]
    outs = together([tuple(x.double() for x in qkv) for qkv in qkvs], back, ahead, block)
    for out, qkv in zip(outs, qkvs, strict=True):
        torch.testing.assert_close(out, exact(*qkv, block, back, ahead), rtol=0, atol=1e-13)


@pytest.mark.parametrize("reach", [(10**9, 10**9), (10**9, 0), (0, 10**9), (5, 7)])
def test_a_reach_beyond_the_sequence_costs_and_sees_no_more(reach):
    q, k, v = fused(101)
    table = BlockTable.from_lengths([101], BLOCK)
    layout = BlockLayout(table)
    out = block_attention(q, k, v, layout, *reach)
    assert excess_error(out, dense(q, k, v, BLOCK, *reach), exact(q, k, v, BLOCK, *reach)) <= SOUND
    plan = layout.plan(*reach)
    parts = [*plan.groups, *([plan.ends] if plan.ends else [])]
    assert all(part.keys.shape[1] <= 9 * BLOCK for part in parts)


def test_one_frame_is_its_own_value():
    q, k, v = fused(1)
    torch.testing.assert_close(alone(q, k, v, 1, 1), v, rtol=2**-22, atol=0)


@pytest.mark.parametrize("reach", REACHES)
def test_the_reference_is_the_definition(reach):
    for t in (1, 24, 60, 101):
        q, k, v = (x.double() for x in fused(t))
        out = alone(q, k, v, *reach, implementation="reference")
        torch.testing.assert_close(out, exact(q, k, v, BLOCK, *reach), rtol=0, atol=1e-14)


def test_an_unknown_implementation_is_refused():
    with pytest.raises(OptionError, match="implementation: got 'fast', expected 'torch' or 'reference'"):
        alone(*fused(3), 0, 0, implementation="fast")


@pytest.mark.parametrize("reach", REACHES)
def test_strides_do_not_matter(reach):
    strided = fused(101)
    assert not strided[0].is_contiguous()
    out = alone(*strided, *reach)
    torch.testing.assert_close(alone(*(x.contiguous() for x in strided), *reach), out, rtol=0, atol=1e-6)
    reversed_heads = [x.permute(2, 1, 0).contiguous().permute(2, 1, 0) for x in strided]
    assert reversed_heads[0].stride(-1) != 1
    torch.testing.assert_close(alone(*reversed_heads, *reach), out, rtol=0, atol=1e-6)


def test_inputs_are_not_written():
    q, k, v = fused(101)
    before = [x.clone() for x in (q, k, v)]
    alone(q, k, v, 1, 1)
    assert all(torch.equal(x, y) for x, y in zip((q, k, v), before, strict=True))


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("reach", REACHES)
def test_nothing_is_read_before_it_is_written(reach, dtype):
    assert torch.empty(7).isnan().all()
    qkvs = [fused(t, dtype=dtype, seed=t) for t in (1, 5, 24, 25, 47, 101)]
    for out in [*together(qkvs, *reach), *(alone(*qkv, *reach) for qkv in qkvs)]:
        assert out.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("reach", REACHES)
def test_half_precision_is_finite_and_as_exact_as_pytorch(reach, dtype):
    lengths = [t for t in LENGTHS if t % BLOCK]
    qkvs = [fused(t, dtype=dtype, seed=t) for t in lengths]
    for t, out, qkv in zip(lengths, together(qkvs, *reach), qkvs, strict=True):
        assert out.dtype == dtype
        assert out.isfinite().all(), t
        assert excess_error(out, dense(*qkv, BLOCK, *reach), exact(*qkv, BLOCK, *reach)) <= SOUND, t


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_scores_far_apart_stay_finite(dtype):
    q, k, v = fused(50, dtype=dtype)
    for back, ahead in REACHES:
        assert alone(30 * q, 30 * k, v, back, ahead).isfinite().all()


@pytest.mark.parametrize("reach", REACHES)
def test_the_gradient_is_that_of_dense_attention(reach):
    lengths = [1, 24, 31, 101]
    leaves = [torch.stack(fused(t, width=8, dtype=torch.float64, seed=t), 1).requires_grad_() for t in lengths]
    cotangents = [fused(t, width=8, dtype=torch.float64, seed=t + 1)[0] for t in lengths]
    outs = together([leaf.unbind(1) for leaf in leaves], *reach)
    got = torch.autograd.grad(outs, leaves, cotangents)
    outs = [exact(*leaf.unbind(1), BLOCK, *reach) for leaf in leaves]
    expected = torch.autograd.grad(outs, leaves, cotangents)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("reach", REACHES)
def test_the_gradient_is_that_of_differences(reach):
    layout = BlockLayout(BlockTable.from_lengths([5, 3, 7, 1], 3))
    qkv = [x.clone().requires_grad_() for x in fused(16, heads=1, width=2, dtype=torch.float64)]
    assert torch.autograd.gradcheck(lambda q, k, v: block_attention(q, k, v, layout, *reach), qkv)
