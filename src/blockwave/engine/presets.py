# SPDX-License-Identifier: Apache-2.0
"""Flows by name: fewer evaluations for a measured distance to the exact sound (docs/quality.md has the table)."""

from __future__ import annotations

from ..errors import OptionError
from .request import Flow

PRESETS = {
    "exact": Flow(),
    # Evaluations of a branch, of which exact has 72; log-mel L1 to exact of the embedded voice, twelve sentences.
    "fast": Flow(steps=5, solver="rk2", guidance_per="step"),  # 12; 0.018
    "faster": Flow(steps=4, solver="rk2", guidance_per="step"),  # 9; 0.028
}


def flow_of(
    preset: str = "exact",
    steps: int | None = None,
    sway: float | None = -1.0,
    solver: str | None = None,
    guidance_per: str | None = None,
) -> Flow:
    """The flow of a preset; what is given beside it goes before it.

    Raises:
        OptionError: an unknown preset, or a value outside its range.
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise OptionError(f"preset: got {preset!r}, expected one of {list(PRESETS)}")
    usual = PRESETS[preset]
    return Flow(
        steps=usual.steps if steps is None else steps,
        sway=sway,
        solver=usual.solver if solver is None else solver,
        guidance_per=usual.guidance_per if guidance_per is None else guidance_per,
    )
