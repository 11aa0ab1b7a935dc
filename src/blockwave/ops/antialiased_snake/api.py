# SPDX-License-Identifier: Apache-2.0
"""The contract of the anti-aliased Snake, and the rule that chooses its implementation."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from ...errors import OptionError
from . import native, polyphase, reference

Implementation = Literal["reference", "polyphase", "native"]
IMPLEMENTATIONS: tuple[Implementation, ...] = get_args(Implementation)


def choose(
    device: torch.device, needs_grad: bool, dtype: torch.dtype = torch.float32, num_taps: int = native.NUM_TAPS
) -> Implementation:
    """What runs where no implementation is named.

    On a CPU, while no gradient is recorded, "native" where numba is installed and "polyphase" where it is not: there
    each is faster than what follows. "reference" runs everywhere else: it is differentiable, and on other devices the
    polyphase form has not been measured.
    """
    if device.type != "cpu" or needs_grad:
        return "reference"
    return "native" if native.takes(device, dtype, num_taps) and native.why_not() is None else "polyphase"


def antialiased_snake(
    x: Tensor,
    log_alpha: Tensor,
    log_beta: Tensor,
    taps: tuple[float, ...],
    implementation: Implementation | None = None,
) -> Tensor:
    """Upsamples by two, applies SnakeBeta, downsamples by two.

    With f = ``taps`` (K of them), x and s continued beyond both ends by their first and last value::

        s[m] = 2 sum_j x[j] f[m + K/2 - 1 - 2j]                      m = 0 .. 2L - 1
        z[m] = s[m] + sin(exp(log_alpha) s[m])^2 / (exp(log_beta) + 1e-9)
        y[n] = sum_k f[k] z[2n + k - (K/2 - 1)]                      n = 0 .. L - 1

    Sources: Snake is x + sin(ax)^2 / a of Ziyin, Hartwig and Ueda, 2020, arXiv 2006.08195; a magnitude of its own,
    both stored as logarithms, and the filters around it are from BigVGAN, Lee et al., 2023, arXiv 2206.04658,
    section 3.2. The taps are a Kaiser-windowed sinc (:func:`blockwave.waveform.filters.kaiser_sinc`).

    Args:
        x: [B, C, L], L >= 1, floating point, any strides.
        log_alpha, log_beta: [C], on the device of ``x``.
        taps: the low-pass of both resamplings; their number is a multiple of 4, their sum is 1.
        implementation: "reference" (the definition), "polyphase" (no zero-stuffing, no gradients), "native" (compiled
            by numba: on a CPU, 12 taps, all but float64, no gradients), or None for :func:`choose`. A named one runs
            or is refused, it is never replaced.

    Returns:
        [B, C, L], dtype of ``x``. Everything inside, the exponentials above all, is float32 where ``x`` is a half
        precision, and float64 where ``x`` is float64.

    Raises:
        OptionError: an unknown implementation, one that cannot record the gradient asked for, shapes that do not fit.
    """
    if x.ndim != 3 or x.shape[-1] == 0 or log_alpha.shape != x.shape[1:2] or log_beta.shape != x.shape[1:2]:
        shapes = [list(t.shape) for t in (x, log_alpha, log_beta)]
        raise OptionError(f"antialiased_snake: got shapes {shapes}, expected [B, C, L] with L >= 1, [C] and [C]")
    if not taps or len(taps) % 4:
        raise OptionError(f"antialiased_snake: got {len(taps)} taps, expected a multiple of 4, such as 12")
    needs_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (x, log_alpha, log_beta))
    if implementation is None:
        implementation = choose(x.device, needs_grad, x.dtype, len(taps))
    if implementation == "reference":
        return reference.activate(x, log_alpha, log_beta, taps)
    if implementation not in IMPLEMENTATIONS:
        raise OptionError(f"implementation: got {implementation!r}, expected one of {list(IMPLEMENTATIONS)} or None")
    if needs_grad:
        raise OptionError(
            f"implementation: got {implementation!r} while a gradient is recorded, expected 'reference' or None; "
            "or call it under torch.no_grad()"
        )
    if implementation == "polyphase":
        return polyphase.activate(x, log_alpha, log_beta, taps)
    if not native.takes(x.device, x.dtype, len(taps)):
        raise OptionError(
            f"implementation: got 'native' for {x.dtype} on {x.device} with {len(taps)} taps, expected another dtype "
            f"than float64, a CPU and {native.NUM_TAPS} taps; name another one, or None"
        )
    if (reason := native.why_not()) is not None:
        raise OptionError(f"implementation: got 'native', but {reason}; or name another one, or None")
    return native.activate(x, log_alpha, log_beta, taps)
