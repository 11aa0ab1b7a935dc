# SPDX-License-Identifier: Apache-2.0
"""Block attention on everybody's tensors [B, H, T, D], and the memory that it takes."""

from __future__ import annotations

import pytest
import torch

from blockwave import block_sparse_attention
from blockwave.blocks import BlockTable
from blockwave.errors import OptionError
from blockwave.ops.block_attention import BlockLayout, block_attention
from blockwave.testing import excess_error
from tests.attention import BLOCK, REACHES, SOUND, dense, exact, fused


def four_axes(batch, frames, dtype=torch.float32, heads=3, width=16):
    qkv = fused(batch * frames, heads, width, dtype, seed=frames)
    return [x.unflatten(0, (batch, frames)).transpose(1, 2) for x in qkv]


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("frames", [1, 23, 24, 25, 72, 101])
def test_ordinary_tensors(batch, frames, reach):
    q, k, v = four_axes(batch, frames)
    out = block_sparse_attention(q, k, v, BLOCK, *reach)
    assert out.shape == q.shape
    items = [[x[i].transpose(0, 1) for x in (q, k, v)] for i in range(batch)]
    for item, qkv in zip(out, items, strict=True):
        plain, truth = dense(*qkv, BLOCK, *reach), exact(*qkv, BLOCK, *reach)
        assert excess_error(item.transpose(0, 1), plain, truth) <= SOUND


@pytest.mark.parametrize("batch", [1, 2])
def test_any_strides_of_ordinary_tensors(batch):
    qkv = four_axes(batch, 50)
    out = block_sparse_attention(*qkv, BLOCK, 1, 1)
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)):
        back = [order.index(i) for i in range(4)]
        strided = [x.permute(order).contiguous().permute(back) for x in qkv]
        torch.testing.assert_close(block_sparse_attention(*strided, BLOCK, 1, 1), out, rtol=0, atol=1e-6)


@pytest.mark.parametrize("batch", [1, 2])
def test_the_gradient_of_ordinary_tensors(batch):
    qkv = [x.clone().requires_grad_() for x in four_axes(batch, 7, torch.float64, heads=2, width=2)]
    assert torch.autograd.gradcheck(lambda q, k, v: block_sparse_attention(q, k, v, 3, 1, 1), qkv)


def test_nothing_in_is_nothing_out():
    for shape in ((0, 2, 5, 4), (2, 2, 0, 4)):
        x = torch.zeros(shape)
        assert block_sparse_attention(x, x, x, 24).shape == shape


X = torch.zeros(1, 2, 5, 4)


@pytest.mark.parametrize(
    ("q", "k", "v", "message"),
    [
        (X[0], X[0], X[0], r"got shapes \[\[2, 5, 4\], .*\], expected three equal shapes \[B, H, T, D\]"),
        (X, X[:, :1], X, r"got shapes .*\[1, 1, 5, 4\].*, expected three equal shapes"),
        (X, X, X[:, :, :3], r"got shapes .*\[1, 2, 3, 4\]\], expected three equal shapes"),
        (X, X.double(), X, r"got .*torch\.float64.*, expected one floating-point dtype on one device"),
        (X, X, X.to("meta"), r"got .*'meta'.*, expected one floating-point dtype on one device"),
        (X.int(), X.int(), X.int(), r"got .*torch\.int32.*, expected one floating-point dtype"),
    ],
)
def test_tensors_that_do_not_go_together_are_refused(q, k, v, message):
    with pytest.raises(OptionError, match=f"block_sparse_attention: {message}"):
        block_sparse_attention(q, k, v, 24)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 0, 0), r"got block_size 0, expected an integer >= 1"),
        ((2.0, 0, 0), r"got block_size 2\.0, expected an integer >= 1"),
        ((True, 0, 0), r"got block_size True, expected an integer >= 1"),
        ((24, -1, 0), r"got look_backward -1, expected an integer >= 0"),
        ((24, 0, -1), r"got look_ahead -1, expected an integer >= 0"),
        ((24, 0, None), r"got look_ahead None, expected an integer >= 0"),
    ],
)
def test_numbers_outside_their_range_are_refused(numbers, message):
    with pytest.raises(OptionError, match=f"block_sparse_attention: {message}"):
        block_sparse_attention(X, X, X, *numbers)


def largest_allocation(call):
    """Bytes of the largest single gain in memory over all operators, those inside kernels included."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        call()
    return max(event.cpu_memory_usage for event in profile.events())


def test_the_instrument_sees_a_dense_mask():
    q, k, v = fused(2000, heads=1, width=8)
    assert largest_allocation(lambda: dense(q, k, v, BLOCK, 1, 1)) >= 2000**2


@pytest.mark.parametrize("reach", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_20_000_frames_allocate_nothing_quadratic(reach):
    q, k, v = fused(20_000, heads=2, width=32)
    size = q.numel() * q.element_size()
    table = BlockTable.from_lengths([20_000], BLOCK)
    largest = largest_allocation(lambda: block_attention(q, k, v, BlockLayout(table), *reach))
    assert size <= largest <= 2 * size  # the output itself, once more where parts are put in order
    assert 2 * size < 20_000**2 / 30
