# SPDX-License-Identifier: Apache-2.0
"""Whether a rendering is the model's: the figures and the bar of the public block-sparse engine.

The bar is what vLLM-Omni's pull request 7975 published for its own change: mel within 6e-6, waveform correlation of at
least 0.99982, same length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError

MEL_BAR = 6e-6
CORRELATION_BAR = 0.99982
EXACT_BAR = 1e-5  # of the reference's largest value: what this engine means by exact


@dataclass(frozen=True)
class Comparison:
    """One figure of one stage.

    Attributes:
        stage: what was compared.
        figure: name of the figure.
        value: what was measured.
        bar: what it is held against, or None where there is none.
        passed: whether it keeps the bar; True where there is none.
        binding: whether a bar that is not kept is a fault. It is not for the published mel bar, which is absolute, nor
            for the waveform of a whole chain, where the vocoder amplifies the mel's rounding: in both the reference's
            own distance from float64 can exceed the bar.
    """

    stage: str
    figure: str
    value: float
    bar: str | None = None
    passed: bool = True
    binding: bool = True


def largest_difference(ours: np.ndarray, reference: np.ndarray) -> float:
    """max |a - b| over equal shapes."""
    check_shapes(ours, reference)
    return float(np.abs(ours.astype(np.float64) - reference.astype(np.float64)).max())


def share_of_largest(ours: np.ndarray, reference: np.ndarray) -> float:
    """max |a - b| / max |b|."""
    return largest_difference(ours, reference) / float(np.abs(reference).max())


def correlation(ours: np.ndarray, reference: np.ndarray) -> float:
    """Pearson's correlation of two waveforms [L]; 1 for equal ones, also where both are constant."""
    check_shapes(ours, reference)
    a, b = (x.astype(np.float64) - x.mean(dtype=np.float64) for x in (ours, reference))
    norm = np.sqrt((a @ a) * (b @ b))
    if norm == 0:
        return float(np.array_equal(ours, reference))
    return float(a @ b / norm)


def compare(
    ours_mel: np.ndarray, reference_mel: np.ndarray, ours_wave: np.ndarray, reference_wave: np.ndarray
) -> list[Comparison]:
    """Length, mel and waveform of one rendering against the reference's."""
    equal_length = len(ours_wave) == len(reference_wave)
    rows = [Comparison("length", "samples", len(ours_wave), f"= {len(reference_wave)}", equal_length)]
    if not equal_length:
        return rows
    mel, mel_share = largest_difference(ours_mel, reference_mel), share_of_largest(ours_mel, reference_mel)
    similar, wave_share = correlation(ours_wave, reference_wave), share_of_largest(ours_wave, reference_wave)
    return [
        *rows,
        Comparison("mel", "largest difference", mel, f"<= {MEL_BAR}", mel <= MEL_BAR, binding=False),
        Comparison("mel", "of the largest value", mel_share, f"<= {EXACT_BAR}", mel_share <= EXACT_BAR),
        Comparison("waveform", "of the largest value", wave_share, f"<= {EXACT_BAR}", wave_share <= EXACT_BAR, False),
        Comparison("waveform", "correlation", similar, f">= {CORRELATION_BAR}", similar >= CORRELATION_BAR),
    ]


def check_shapes(ours: np.ndarray, reference: np.ndarray) -> None:
    """Raises OptionError unless both have the same shape and something in it."""
    if ours.shape != reference.shape or ours.size == 0:
        raise OptionError(f"comparison: got shapes {list(ours.shape)} and {list(reference.shape)}, expected equal ones")
