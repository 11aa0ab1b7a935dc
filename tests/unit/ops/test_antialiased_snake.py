# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from blockwave.errors import OptionError
from blockwave.ops.antialiased_snake import IMPLEMENTATIONS, antialiased_snake, choose, polyphase
from blockwave.waveform.filters import ANTI_ALIAS_TAPS, kaiser_sinc

LENGTHS = [*range(1, 16), 31, 64, 100, 1001]


def inputs(length: int, batch: int = 2, channels: int = 3, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, channels, length, generator=generator) * 2
    return x, torch.randn(channels, generator=generator) * 0.5, torch.randn(channels, generator=generator) * 0.5


def by_contract(x: Tensor, log_alpha: Tensor, log_beta: Tensor, taps: tuple[float, ...]) -> Tensor:
    """The three formulas of the contract, sample by sample, in float64."""
    length, count = x.shape[-1], len(taps)
    centre, out = count // 2 - 1, torch.zeros(x.shape, dtype=torch.float64)
    for b, c in ((b, c) for b in range(x.shape[0]) for c in range(x.shape[1])):
        row, alpha, beta = x[b, c].tolist(), math.exp(log_alpha[c]), math.exp(log_beta[c])

        def wave(m: int, row: list[float] = row) -> float:
            reads = range((m + centre - count) // 2, (m + centre) // 2 + 1)
            terms = ((j, m + centre - 2 * j) for j in reads)
            return 2 * sum(row[min(max(j, 0), length - 1)] * taps[k] for j, k in terms if 0 <= k < count)

        doubled = [wave(m) for m in range(2 * length)]
        z = [s + math.sin(alpha * s) ** 2 / (beta + 1e-9) for s in doubled]
        for n in range(length):
            reads = (min(max(2 * n + k - centre, 0), 2 * length - 1) for k in range(count))
            out[b, c, n] = sum(tap * z[m] for tap, m in zip(taps, reads, strict=True))
    return out


@pytest.mark.parametrize("taps", [ANTI_ALIAS_TAPS, kaiser_sinc(8, 0.25, 0.3), (0.1, 0.4, 0.3, 0.2)], ids=len)
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_is_the_contract(implementation, taps):
    for length in (1, 2, 5, 23):
        x, log_alpha, log_beta = (t.double() for t in inputs(length))
        got = antialiased_snake(x, log_alpha, log_beta, taps, implementation)
        torch.testing.assert_close(got, by_contract(x, log_alpha, log_beta, taps), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
def test_polyphase_loses_no_more_than_the_reference(length):
    args = inputs(length, batch=3, channels=17)
    exact = antialiased_snake(*(t.double() for t in args), ANTI_ALIAS_TAPS, "reference")
    loss = (antialiased_snake(*args, ANTI_ALIAS_TAPS, "reference") - exact).abs().max()
    got = antialiased_snake(*args, ANTI_ALIAS_TAPS, "polyphase")
    ulp = torch.finfo(torch.float32).eps * exact.abs().max()
    assert got.dtype == torch.float32
    assert (got - exact).abs().max() <= max(2 * loss, ulp)


def test_strides_do_not_matter():
    x, log_alpha, log_beta = inputs(40)
    for implementation in IMPLEMENTATIONS:
        whole = antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, implementation)
        strided = x.transpose(1, 2).contiguous().transpose(1, 2)
        assert not strided.is_contiguous()
        got = antialiased_snake(strided, log_alpha, log_beta, ANTI_ALIAS_TAPS, implementation)
        torch.testing.assert_close(got, whole, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("piece", [1, 50, 100, 1 << 20])
def test_pieces_change_no_bit_and_read_no_stale_memory(monkeypatch, piece):
    args = inputs(37, batch=3, channels=5)
    whole = antialiased_snake(*args, ANTI_ALIAS_TAPS, "polyphase")
    monkeypatch.setattr(polyphase, "_CPU_PIECE_VALUES", piece)
    torch.use_deterministic_algorithms(True)  # fills every uninitialised tensor with NaN
    try:
        assert torch.empty(3).isnan().all()
        got = antialiased_snake(*args, ANTI_ALIAS_TAPS, "polyphase")
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(got, whole)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_once_at_the_end(implementation, dtype):
    x, log_alpha, log_beta = inputs(29)
    halves = x.to(dtype), log_alpha.to(dtype), log_beta.to(dtype)
    expected = antialiased_snake(*(t.float() for t in halves), ANTI_ALIAS_TAPS, implementation)
    got = antialiased_snake(*halves, ANTI_ALIAS_TAPS, implementation)
    assert got.dtype == dtype
    assert torch.equal(got, expected.to(dtype))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_reads_no_value_back(implementation):
    x, log_alpha, log_beta = (t.to("meta") for t in inputs(9))
    assert antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, implementation).shape == x.shape


def test_a_filter_shifted_by_one_tap_is_noticed():
    args = inputs(100)
    shifted = (*ANTI_ALIAS_TAPS[1:], ANTI_ALIAS_TAPS[0])
    right, wrong = (antialiased_snake(*args, taps) for taps in (ANTI_ALIAS_TAPS, shifted))
    assert (right - wrong).abs().max() > 1e-2 * right.abs().max()


def test_gradients_come_from_the_reference():
    x, log_alpha, log_beta = (t.double().requires_grad_() for t in inputs(7, batch=1, channels=2))
    torch.autograd.gradcheck(lambda *args: antialiased_snake(*args, ANTI_ALIAS_TAPS), (x, log_alpha, log_beta))
    with pytest.raises(OptionError, match=r"got 'polyphase' while a gradient is recorded.*torch\.no_grad"):
        antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, "polyphase")
    with torch.no_grad():
        antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, "polyphase")


def test_the_choice_is_declared():
    assert choose(torch.device("cpu"), needs_grad=False) == "polyphase"
    assert choose(torch.device("cpu"), needs_grad=True) == "reference"
    assert choose(torch.device("cuda"), needs_grad=False) == "reference"


def test_refuses_what_it_cannot_do():
    x, log_alpha, log_beta = inputs(4)
    with pytest.raises(OptionError, match=r"got 'fast', expected one of.*'polyphase'"):
        antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, "fast")  # pyright: ignore[reportArgumentType]
    with pytest.raises(OptionError, match="got 6 taps, expected a multiple of 4"):
        antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS[:6])
    for wrong in ((x[0], log_alpha, log_beta), (x[..., :0], log_alpha, log_beta), (x, log_alpha[:2], log_beta)):
        with pytest.raises(OptionError, match=r"got shapes .*, expected \[B, C, L\]"):
            antialiased_snake(*wrong, ANTI_ALIAS_TAPS)
