# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from blockwave.errors import OptionError
from blockwave.ops.antialiased_snake import IMPLEMENTATIONS, antialiased_snake, choose, native, polyphase
from blockwave.waveform.filters import ANTI_ALIAS_TAPS, kaiser_sinc

LENGTHS = [*range(1, 16), 31, 64, 100, *range(495, 506), 999, 1000, 1001, 1003]  # around the native form's tiles


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
@pytest.mark.parametrize("implementation", ["reference", "polyphase"])
def test_is_the_contract(implementation, taps):
    for length in (1, 2, 5, 23):
        x, log_alpha, log_beta = (t.double() for t in inputs(length))
        got = antialiased_snake(x, log_alpha, log_beta, taps, implementation)
        torch.testing.assert_close(got, by_contract(x, log_alpha, log_beta, taps), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 5, 23])
def test_native_is_the_contract(length):
    args = inputs(length)
    expected = by_contract(*(t.double() for t in args), ANTI_ALIAS_TAPS)
    got = antialiased_snake(*args, ANTI_ALIAS_TAPS, "native").double()
    torch.testing.assert_close(got, expected, rtol=0, atol=4e-7 * float(expected.abs().max()))


@pytest.mark.parametrize("length", LENGTHS)
def test_polyphase_loses_no_more_than_the_reference(length):
    args = inputs(length, batch=3, channels=17)
    exact = antialiased_snake(*(t.double() for t in args), ANTI_ALIAS_TAPS, "reference")
    loss = (antialiased_snake(*args, ANTI_ALIAS_TAPS, "reference") - exact).abs().max()
    got = antialiased_snake(*args, ANTI_ALIAS_TAPS, "polyphase")
    ulp = torch.finfo(torch.float32).eps * exact.abs().max()
    assert got.dtype == torch.float32
    assert (got - exact).abs().max() <= max(2 * loss, ulp)


@pytest.mark.parametrize("length", LENGTHS)
def test_native_is_right_at_every_place_of_every_length(length):
    """Its sums are taken in another order, so single values are luckier or less lucky than the reference's."""
    args = inputs(length, batch=3, channels=17)
    exact = antialiased_snake(*(t.double() for t in args), ANTI_ALIAS_TAPS, "reference")
    got = antialiased_snake(*args, ANTI_ALIAS_TAPS, "native")
    assert got.dtype == torch.float32
    assert (got - exact).abs().max() <= 2e-6 * exact.abs().max()


def test_native_loses_no_more_than_the_reference_on_the_whole():
    args = inputs(4001, batch=3, channels=17)
    exact = antialiased_snake(*(t.double() for t in args), ANTI_ALIAS_TAPS, "reference")
    losses = {name: antialiased_snake(*args, ANTI_ALIAS_TAPS, name) - exact for name in ("reference", "native")}
    assert losses["native"].norm() <= 1.05 * losses["reference"].norm()
    assert losses["native"].abs().max() <= 2 * losses["reference"].abs().max()


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


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_shares_of_threads_change_no_bit(monkeypatch, threads):
    args = inputs(700, batch=2, channels=5)
    whole = antialiased_snake(*args, ANTI_ALIAS_TAPS, "native")
    monkeypatch.setattr(native, "_MIN_VALUES", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert torch.equal(antialiased_snake(*args, ANTI_ALIAS_TAPS, "native"), whole)


def test_native_sines_are_exact_for_large_arguments():
    """One constant sample is its own filtered self, so the output is the activation of one number."""
    s = torch.cat([torch.linspace(-3e3, 3e3, 4001), torch.tensor([0.0, 1e-20, math.pi, -5e4, 1e5])])[None, :, None]
    zeros = torch.zeros(s.shape[1])
    got = antialiased_snake(s.repeat(1, 1, 30), zeros, zeros, ANTI_ALIAS_TAPS, "native")[..., 15] - s[..., 0]
    # The filters round s; the sine moves by as much.
    rounding = 4 * torch.finfo(torch.float32).eps * s[..., 0].abs()
    expected = torch.sin(s[..., 0].double()) ** 2
    assert ((got - expected).abs() <= 3 * rounding + 1e-6).all()


@pytest.mark.parametrize("scale", [1e6, 1e8, 1e12, 1e30])
def test_native_sines_of_any_size_are_sines(scale):
    """No digit of them means anything, but what they add is between 0 and 1."""
    x = torch.linspace(-1, 1, 4001)[None, :, None].repeat(1, 1, 30)
    log_alpha, zeros = torch.full((4001,), math.log(scale)), torch.zeros(4001)
    got = antialiased_snake(x, log_alpha, zeros, ANTI_ALIAS_TAPS, "native")[..., 15] - x[..., 0]
    assert got.min() >= -1e-6
    assert got.max() <= 1 + 1e-6


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_stays_so_and_stays_in_reach(bad):
    x, log_alpha, log_beta = inputs(60)
    x[0, 1, 30] = bad
    got = antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, "native")
    wrong = ~got.isfinite()
    assert wrong[0, 1, 30]
    assert not wrong[0, 1, :25].any()
    assert not wrong[0, 1, 36:].any()
    assert wrong.sum() == wrong[0, 1].sum()


@pytest.mark.parametrize("implementation", ["reference", "polyphase"])
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
    for other in ("polyphase", "native"):
        with pytest.raises(OptionError, match=rf"got '{other}' while a gradient is recorded.*torch\.no_grad"):
            antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, other)
    with torch.no_grad():
        antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, "polyphase")


def test_the_choice_is_declared(monkeypatch):
    assert choose(torch.device("cpu"), needs_grad=False) == "native"
    assert choose(torch.device("cpu"), needs_grad=False, dtype=torch.bfloat16) == "native"
    assert choose(torch.device("cpu"), needs_grad=False, dtype=torch.float64) == "polyphase"
    assert choose(torch.device("cpu"), needs_grad=False, num_taps=8) == "polyphase"
    assert choose(torch.device("cpu"), needs_grad=True) == "reference"
    assert choose(torch.device("cuda"), needs_grad=False) == "reference"
    monkeypatch.setattr(native, "why_not", lambda: "numba is not there")
    assert choose(torch.device("cpu"), needs_grad=False) == "polyphase"
    with pytest.raises(OptionError, match="got 'native', but numba is not there; or name another one, or None"):
        antialiased_snake(*inputs(4), ANTI_ALIAS_TAPS, "native")


def test_without_numba_torch_does_it_all():
    """In a process of its own, in which numba cannot be imported."""
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import torch; from blockwave.ops.antialiased_snake import antialiased_snake, choose, native\n"
        "from blockwave.waveform.filters import ANTI_ALIAS_TAPS\n"
        "assert choose(torch.device('cpu'), needs_grad=False) == 'polyphase'\n"
        "assert 'pip install' in native.why_not()\n"
        "x, zeros = torch.ones(1, 2, 9), torch.zeros(2)\n"
        "assert antialiased_snake(x, zeros, zeros, ANTI_ALIAS_TAPS).isfinite().all()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_compiles_nothing():
    code = "import sys; import blockwave; assert not any(m.split('.')[0] in ('numba', 'llvmlite') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_nothing_can_be_kept_on_disk_it_compiles_for_itself(tmp_path):
    """An installation that cannot be written to, of a user without a folder for caches."""
    code = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "from blockwave.ops.antialiased_snake import native; assert native.why_not() is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("kind", "length"), [("nbi", 0), ("nbc", 0), ("nbc", 100)])
def test_what_a_crash_left_half_written_is_compiled_anew(tmp_path, kind, length):
    code = "from blockwave.ops.antialiased_snake import native; assert native.why_not() is None"
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=settings)
    (file,) = tmp_path.rglob(f"*._snake-*.{kind}")
    file.write_bytes(file.read_bytes()[:length])
    subprocess.run([sys.executable, "-c", code], check=True, env=settings)


def test_on_a_full_disk_it_compiles_for_itself(tmp_path):
    code = (
        "import errno; from numba.core import caching\n"
        "def full(*arguments): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "caching.IndexDataCacheFile.save = full\n"
        "from blockwave.ops.antialiased_snake import native; assert native.why_not() is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})


@pytest.mark.parametrize("error", ["OSError('no such library')", "SystemError('wrong numpy')"])
def test_with_a_numba_that_is_broken_torch_does_it_all(error):
    code = (
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'llvmlite': raise {error}\n"
        "sys.meta_path.insert(0, Broken())\n"
        "import torch; from blockwave.ops.antialiased_snake import choose, native\n"
        "assert choose(torch.device('cpu'), needs_grad=False) == 'polyphase'\n"
        f"assert {error.split('(')[0]!r} in native.why_not(), native.why_not()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loops_that_would_run_as_python_are_not_taken():
    code = "from blockwave.ops.antialiased_snake import native\nassert 'NUMBA_DISABLE_JIT is set' in native.why_not()"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})


def test_a_thread_that_outlives_the_main_one_can_use_it():
    """The interpreter then starts no threads any more, nor lets pools do so."""
    code = (
        "import threading, torch\n"
        "from blockwave.ops.antialiased_snake import antialiased_snake, native\n"
        "from blockwave.waveform.filters import ANTI_ALIAS_TAPS\n"
        "x, zeros = torch.randn(1, 4, 50), torch.zeros(4)\n"
        "alone = antialiased_snake(x, zeros, zeros, ANTI_ALIAS_TAPS, 'native')\n"
        "native._MIN_VALUES, torch.get_num_threads = 1, lambda: 3\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    while not native._pool()._shutdown and not __import__('concurrent').futures.thread._shutdown: pass\n"
        "    got = antialiased_snake(x, zeros, zeros, ANTI_ALIAS_TAPS, 'native')\n"
        "    print('equal', torch.equal(got, alone))\n"
        "threading.Thread(target=late).start()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "equal True\n", done.stderr


def test_refuses_what_it_cannot_do():
    x, log_alpha, log_beta = inputs(4)
    with pytest.raises(OptionError, match=r"got 'fast', expected one of.*'polyphase'"):
        antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS, "fast")  # pyright: ignore[reportArgumentType]
    for wrong_kind in (t.double() for t in (x, log_alpha, log_beta)), (t.to("meta") for t in (x, log_alpha, log_beta)):
        with pytest.raises(OptionError, match=r"got 'native' for torch\.float.. on (cpu|meta) with 12 taps, expected"):
            antialiased_snake(*wrong_kind, ANTI_ALIAS_TAPS, "native")
    with pytest.raises(OptionError, match="got 6 taps, expected a multiple of 4"):
        antialiased_snake(x, log_alpha, log_beta, ANTI_ALIAS_TAPS[:6])
    for wrong in ((x[0], log_alpha, log_beta), (x[..., :0], log_alpha, log_beta), (x, log_alpha[:2], log_beta)):
        with pytest.raises(OptionError, match=r"got shapes .*, expected \[B, C, L\]"):
            antialiased_snake(*wrong, ANTI_ALIAS_TAPS)
