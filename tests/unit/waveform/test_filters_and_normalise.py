# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from blockwave.waveform.filters import ANTI_ALIAS_TAPS, kaiser_sinc
from blockwave.waveform.normalise import normalise


def test_taps_are_a_symmetric_low_pass_of_unit_sum():
    taps = np.array(ANTI_ALIAS_TAPS)
    assert len(taps) == 12
    assert np.array_equal(taps, taps[::-1])
    assert abs(taps.sum() - 1) < 1e-7
    gain = np.abs(np.fft.rfft(taps, 1024))  # bin 512 is half the sampling rate
    assert np.all(np.abs(gain[:50] - 1) < 0.02)
    assert np.all(gain[450:] < 0.02)
    assert gain[256] == pytest.approx(0.5, abs=0.02)


def test_taps_are_float32_numbers():
    assert tuple(torch.tensor(ANTI_ALIAS_TAPS).tolist()) == ANTI_ALIAS_TAPS


def test_kaiser_window_of_all_three_design_ranges():
    # half_width sets the attenuation: below 21 dB the window is flat, above 50 dB another rule gives its beta.
    flat = np.array(kaiser_sinc(12, 0.25, 0.05))
    sinc = np.sinc(0.5 * (np.arange(-6, 6) + 0.5))
    np.testing.assert_allclose(flat, sinc / sinc.sum(), rtol=1e-6)
    narrow, wide = (np.array(kaiser_sinc(24, 0.25, width)) for width in (0.1, 0.4))
    assert abs(wide[0]) < abs(narrow[0]) < abs(np.array(kaiser_sinc(24, 0.25, 0.02))[0])


def test_front_end_is_the_written_out_one():
    x = torch.linspace(-40, 20, 2001, dtype=torch.float64)
    decibels = 20 * torch.log10(x.exp().clamp(min=10 ** (-115 / 20))) - 20
    expected = (2 * (decibels + 115) / 115 - 1).clamp(-1, 1)
    torch.testing.assert_close(normalise(x), expected, rtol=0, atol=1e-14)
    assert (expected.abs() < 1).sum() > 400


def test_front_end_at_the_extremes():
    x = torch.tensor([-1e30, -90.0, 90.0, 1e30, float("inf"), float("-inf")])
    assert normalise(x).tolist() == [-1, -1, 1, 1, 1, -1]
    assert normalise(torch.tensor([float("nan")])).isnan().all()
