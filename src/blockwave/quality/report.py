# SPDX-License-Identifier: Apache-2.0
"""What a study found, as JSON: one row for every setting, each figure with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .bootstrap import Estimate, estimate
from .figures import FIGURES, missing_figures
from .study import Study, Trial

Row = dict[str, Any]


def report(study: Study, trials: Sequence[Trial], details: bool = True) -> dict[str, Any]:
    """Rows of the reference and of every setting; with ``details`` also every sentence's values.

    Intervals hold 95 % (:func:`~.bootstrap.estimate`). ``speed`` is the reference's time over the setting's on the same
    sentences, ``rtf`` compute time over audio time.
    """
    reference = [trial for trial in trials if trial.is_reference]
    content = {
        "against": study.against.name,
        "sentences": len(study.sentences),
        "audio_s": round(sum(trial.sound.duration_s for trial in reference), 2),
        "intervals": "95 %, percentile bootstrap over sentences",
        "missing": missing_figures(),
        "reference": _row(reference, reference),
        "rows": [_row([t for t in trials if t.setting is s and not t.is_reference], reference) for s in study.settings],
    }
    if details:
        content["details"] = [
            {
                "sentence": trial.sentence,
                "text": study.sentences[trial.sentence].text,
                "setting": trial.setting.name,
                "reference": trial.is_reference,
                "seconds": trial.seconds,
                "figures": trial.figures,
                "faults": list(trial.faults),
                "heard": trial.heard,
                "errors": None if trial.errors is None else asdict(trial.errors),
            }
            for trial in trials
        ]
    return content


def _row(ours: Sequence[Trial], reference: Sequence[Trial]) -> Row:
    seconds = [trial.seconds for trial in ours]
    row: Row = {
        "setting": ours[0].setting.name,
        "evaluations": ours[0].setting.evaluations,
        "branch_evaluations": ours[0].setting.branch_evaluations,
        "rtf": _plain(estimate(seconds, [trial.sound.duration_s for trial in ours])),
        "speed": _plain(estimate([trial.seconds for trial in reference], seconds)),
        "faults": sum(len(trial.faults) for trial in ours),
    }
    figures = {key: [trial.figures[key] for trial in ours if key in trial.figures] for key in FIGURES}
    row["figures"] = {key: _figure(values) for key, values in figures.items() if values}
    if ours[0].errors is not None:
        row["words"] = _errors(ours, reference, "word_errors", "words")
        row["characters"] = _errors(ours, reference, "character_errors", "characters")
    return row


def _figure(values: Sequence[float | None]) -> Row | None:
    """Mean with interval, the least and the most of one sentence, and how many sentences have a value."""
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    return {
        **_plain(estimate(defined)),
        "least": _rounded(min(defined)),
        "most": _rounded(max(defined)),
        "sentences": len(defined),
    }


def _errors(ours: Sequence[Trial], reference: Sequence[Trial], errors: str, said: str) -> Row:
    """Pooled rate in percent, and its paired difference from the reference's."""
    counts = [[vars(trial.errors) for trial in side] for side in (ours, reference)]
    made, its = ([100 * count[errors] for count in side] for side in counts)
    total = [count[said] for count in counts[0]]
    return {
        "said": sum(total),
        "errors": sum(count[errors] for count in counts[0]),
        "percent": _plain(estimate(made, total)),
        "percent_added": _plain(estimate([a - b for a, b in zip(made, its, strict=True)], total)),
    }


def _plain(found: Estimate) -> Row:
    return {name: _rounded(value) for name, value in vars(found).items()}


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
