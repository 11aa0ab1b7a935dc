# SPDX-License-Identifier: Apache-2.0
"""The anti-aliased Snake in loops that numba compiles: a tile of one row goes through all steps in the nearest cache.

Importing this module compiles it, or loads what an earlier process compiled. Nothing imports it before it is needed.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import float32, int64, void
from numba.core import config

# Values of a row that go through all steps together. The three scratch rows take 6 kB.
TILE = 500
_LANES = 8  # float32 values of one AVX2 register; loops over whole registers have no remainder
_REACH = 5  # inputs before and after an output that it reads

_ROW, _ROWS = float32[::1], float32[:, ::1]
# A product and the sum that takes it may be one instruction; nothing else of the arithmetic may be moved.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}

# k pi is taken off in three steps. The first constant has 8 bits, so its products with k < 2^16 are exact
# (Cody and Waite, 1980, Software Manual for the Elementary Functions).
_PI_1 = np.float32(3.140625)
_PI_2 = np.float32(math.pi - 3.140625)
_PI_3 = np.float32(math.pi - 3.140625 - float(_PI_2))
_PER_PI = np.float32(1 / math.pi)
_ROUNDER = np.float32(1.5 * 2**23)  # adding and subtracting it rounds to an integer
# sin(r) / r in powers of r^2, by interpolation at Chebyshev's points of [0, pi / 2]: off by less than 4e-11.
_S1 = np.float32(-1.66666666e-1)
_S2 = np.float32(8.33333071e-3)
_S3 = np.float32(-1.98408442e-4)
_S4 = np.float32(2.75248906e-6)
_S5 = np.float32(-2.38881527e-8)
_ONE, _TWO = np.float32(1), np.float32(2)
_MAX_Q = np.float32((math.pi / 2) ** 2)
# Neither this folder nor the user's cache can be written to; a full disk; a file that a crash left half written.
_NO_CACHE = (RuntimeError, OSError, EOFError, pickle.PickleError)
if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
    raise ImportError("NUMBA_DISABLE_JIT is set, and as Python the loops would take hours")


def _compiled(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compiles a function at once, and keeps the result on disk where there is a place for it."""

    def compile_it(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(signature, cache=True, **_OPTIONS)(function)
        except _NO_CACHE:
            return numba.njit(signature, **_OPTIONS)(function)

    return compile_it


@_compiled(void(_ROW, _ROW, _ROW, _ROW, int64))
def _upsample(x, taps, even, odd, count):
    """even[k], odd[k]: the two samples of the doubled rate between x[k + 2] and x[k + 3], taps as they are given."""
    f0, f1, f2, f3, f4, f5 = taps[0], taps[1], taps[2], taps[3], taps[4], taps[5]
    f6, f7, f8, f9, f10, f11 = taps[6], taps[7], taps[8], taps[9], taps[10], taps[11]
    for k in range(count):
        x0, x1, x2, x3, x4, x5 = x[k], x[k + 1], x[k + 2], x[k + 3], x[k + 4], x[k + 5]
        even[k] = (f11 * x0 + f9 * x1) + (f7 * x2 + f5 * x3) + (f3 * x4 + f1 * x5)
        odd[k] = (f10 * x0 + f8 * x1) + (f6 * x2 + f4 * x3) + (f2 * x4 + f0 * x5)


@_compiled(void(_ROW, float32, float32, int64))
def _snake(s, alpha, magnitude, count):
    """In place s + magnitude sin(alpha s)^2. The sign of the sine, and with it the parity of k, does not matter."""
    for i in range(count):
        y = alpha * s[i]
        k = (y * _PER_PI + _ROUNDER) - _ROUNDER
        r = ((y - k * _PI_1) - k * _PI_2) - k * _PI_3
        q = r * r
        if q > _MAX_Q:  # k is not exact; no digit of such a sine means anything, but it has to be one
            q = _MAX_Q
        p = _ONE + q * (_S1 + q * (_S2 + q * (_S3 + q * (_S4 + q * _S5))))
        s[i] += magnitude * (q * (p * p))


@_compiled(void(_ROW, _ROW, _ROW, _ROW, int64))
def _downsample(even, odd, taps, y, count):
    f0, f1, f2, f3, f4, f5 = taps[0], taps[1], taps[2], taps[3], taps[4], taps[5]
    f6, f7, f8, f9, f10, f11 = taps[6], taps[7], taps[8], taps[9], taps[10], taps[11]
    for n in range(count):
        e = (f1 * even[n] + f3 * even[n + 1]) + (f5 * even[n + 2] + f7 * even[n + 3])
        o = (f0 * odd[n] + f2 * odd[n + 1]) + (f4 * odd[n + 2] + f6 * odd[n + 3])
        y[n] = (e + o) + ((f9 * even[n + 4] + f11 * even[n + 5]) + (f8 * odd[n + 4] + f10 * odd[n + 5]))


@_compiled(void(_ROWS, _ROW, _ROW, _ROW, _ROWS, int64, int64))
def activate_rows(x, alpha, magnitude, taps, out, start, stop):
    """Rows ``start .. stop`` of x [R, L] to the same rows of out [R, L]; alpha and magnitude are those of row mod C.

    A tile of the outputs s .. e reads the even samples s - 2 .. e + 2 and the odd ones s - 3 .. e + 1 of the doubled
    rate, and those read the inputs s - 5 .. e + 5.
    """
    length, channels = x.shape[1], alpha.shape[0]
    tiles = (length + TILE - 1) // TILE
    size = (length + tiles - 1) // tiles
    wide = (size + _REACH + _LANES - 1) // _LANES * _LANES
    padded = np.zeros(wide + _REACH, np.float32)
    both = np.empty(2 * wide, np.float32)
    even, odd = both[:wide], both[wide:]
    doubled = taps * _TWO
    for row in range(start, stop):
        signal, result = x[row], out[row]
        for s in range(0, length, size):
            e = min(length, s + size)
            first = s - _REACH
            if first >= 0 and first + wide + _REACH <= length:
                _upsample(signal[first:], doubled, even, odd, wide)
            else:
                for i in range(e - first + _REACH):
                    padded[i] = signal[min(max(first + i, 0), length - 1)]
                _upsample(padded, doubled, even, odd, wide)
            _snake(both, alpha[row % channels], magnitude[row % channels], 2 * wide)
            # What lies beyond an end is the last sample before it.
            if s < 3:
                for k in range(min(3 - s, wide)):
                    if k < 2 - s:
                        even[k] = even[2 - s]
                    odd[k] = even[2 - s]
            if e + 2 >= length:
                last = odd[length - 1 - s + 3]
                for k in range(length - s + 2, e - s + _REACH):
                    even[k] = last
                for k in range(length - s + 3, e - s + _REACH):
                    odd[k] = last
            _downsample(even, odd, taps, result[s:e], e - s)
