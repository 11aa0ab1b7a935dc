# SPDX-License-Identifier: Apache-2.0
"""All figures of two sounds, by one table of names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..encoder import Sound, reference_mel
from ..encoder.log_mel import FRAMES_PER_SECOND
from ..errors import AudioError, MissingExtraError
from .distortion import si_sdr_db
from .intelligibility import load_stoi, stoi
from .level import level_drift_db, worst_block_drift_db
from .perception import load_pesq, pesq
from .spectra import BLOCK_FRAMES, log_mel_distance, spectral_convergence

Values = dict[str, float | None]


@dataclass(frozen=True)
class Figure:
    """How a figure is shown.

    Attributes:
        key: its name in JSON.
        title: its name for people.
        equal: what two equal sounds have.
        form: how its values are written.
    """

    key: str
    title: str
    equal: str
    form: str


FIGURES = {
    figure.key: figure
    for figure in (
        Figure("flow_mel", "flow's log-mel, mean", "0", ".2g"),
        Figure("flow_mel_worst_block", "flow's log-mel, worst block", "0", ".2g"),
        Figure("log_mel", "log-mel, mean", "0", ".2g"),
        Figure("log_mel_worst_block", "log-mel, worst block", "0", ".2g"),
        Figure("spectral_convergence", "spectral convergence", "0", ".2g"),
        Figure("si_sdr_db", "SI-SDR, dB", "144.5", ".1f"),
        Figure("stoi", "STOI", "1", ".4f"),
        Figure("pesq", "PESQ, wide band", "4.64", ".2f"),
        Figure("level_db", "level drift, dB", "0", ".2g"),
        Figure("worst_block_level_db", "level drift, worst block, dB", "0", ".2g"),
        Figure("join_roughness", "roughest join", "", ".2f"),
        Figure("join_roughness_added", "roughest join, added to the reference's", "0", ".2g"),
    )
}
_DOORS: dict[str, Callable[[], object]] = {"stoi": load_stoi, "pesq": load_pesq}


def missing_figures() -> dict[str, str]:
    """Figures whose package is not installed, each with the message that says what to install."""
    missing = {}
    for key, load in _DOORS.items():
        try:
            load()
        except MissingExtraError as error:
            missing[key] = str(error)
    return missing


def check_pair(ours: Sound, reference: Sound, ours_name: str, reference_name: str) -> None:
    """Raises AudioError unless both sounds have one rate and one length."""
    if ours.rate != reference.rate:
        raise AudioError(
            f"{ours_name}: got {ours.rate} Hz and {reference.rate} Hz in {reference_name}, expected one rate; "
            "resample one of them"
        )
    if len(ours.samples) != len(reference.samples):
        lengths = [f"{len(sound.samples)} samples ({sound.duration_s:.3f} s)" for sound in (ours, reference)]
        raise AudioError(
            f"{ours_name}: got {lengths[0]} and {lengths[1]} in {reference_name}, expected one length; cut both to "
            "what they share, sample by sample: a shift is a difference too"
        )


def compare_mels(ours: np.ndarray, reference: np.ndarray, block_frames: int = BLOCK_FRAMES) -> Values:
    """Figures of two log-mels [T, M].

    Raises:
        OptionError: unequal shapes.
    """
    distance = log_mel_distance(ours, reference, block_frames)
    return {"log_mel": distance.mean, "log_mel_worst_block": distance.worst_block}


def compare_sounds(ours: Sound, reference: Sound, block_frames: int = BLOCK_FRAMES) -> Values:
    """Figures of two sounds of one rate and length; a figure is None where it is not defined or its package is missing.

    ``block_frames`` counts hundredths of a second. The log-mels have 80 bins up to 8 kHz.

    Raises:
        OptionError: unequal lengths.
        AudioError: less than 30 ms of sound.
        MissingExtraError: soxr is needed for the rate and not installed.
    """
    a, b, rate = ours.samples, reference.samples, reference.rate
    missing = missing_figures()
    return {
        **compare_mels(reference_mel(ours), reference_mel(reference), block_frames),
        "spectral_convergence": spectral_convergence(a, b),
        "si_sdr_db": si_sdr_db(a, b),
        "stoi": None if "stoi" in missing else stoi(a, b, rate),
        "pesq": None if "pesq" in missing else pesq(a, b, rate),
        "level_db": level_drift_db(a, b),
        "worst_block_level_db": worst_block_drift_db(a, b, block_frames * rate // FRAMES_PER_SECOND),
    }


def show(key: str, value: float | None) -> str:
    """A value as it is written in tables."""
    return "-" if value is None else "0" if value == 0 else format(value, FIGURES[key].form)
