# SPDX-License-Identifier: Apache-2.0
"""How far one rendering is from another: measures of sound, and studies of settings over sentences."""

from .bootstrap import Estimate, estimate
from .distortion import si_sdr_db
from .error_rates import ErrorCounts, count_errors
from .exactness import (
    CORRELATION_BAR,
    EXACT_BAR,
    MEL_BAR,
    Comparison,
    compare,
    correlation,
    largest_difference,
    share_of_largest,
)
from .figures import FIGURES, compare_mels, compare_sounds, missing_figures
from .intelligibility import stoi
from .joins import join_roughness
from .level import level_drift_db, rms_dbfs, worst_block_drift_db
from .perception import pesq
from .recognition import Recogniser
from .settings import Setting, parse_setting
from .soundness import faults
from .spectra import LogMelDistance, log_mel_distance, spectral_convergence
from .study import Study, Trial, spread
from .words import spoken_words

__all__ = [
    "CORRELATION_BAR",
    "EXACT_BAR",
    "FIGURES",
    "MEL_BAR",
    "Comparison",
    "ErrorCounts",
    "Estimate",
    "LogMelDistance",
    "Recogniser",
    "Setting",
    "Study",
    "Trial",
    "compare",
    "compare_mels",
    "compare_sounds",
    "correlation",
    "count_errors",
    "estimate",
    "faults",
    "join_roughness",
    "largest_difference",
    "level_drift_db",
    "log_mel_distance",
    "missing_figures",
    "parse_setting",
    "pesq",
    "rms_dbfs",
    "share_of_largest",
    "si_sdr_db",
    "spectral_convergence",
    "spoken_words",
    "spread",
    "stoi",
    "worst_block_drift_db",
]
