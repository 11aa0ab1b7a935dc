# SPDX-License-Identifier: Apache-2.0
"""``blockwave verify``: is it the model's sound?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .exits import DIFFERENT
from .streams import note, put_json, put_table

if TYPE_CHECKING:
    from ..quality import Comparison


def verify(
    model: options.Model = None,
    codes: Annotated[str | None, typer.Option(help="Codes file; else a sequence that fits the checkpoint.")] = None,
    voice: Annotated[str | None, typer.Option(help="A voice by name, or a voice file.")] = None,
    seed: Annotated[int, typer.Option(help="Of the noise that both get.")] = 0,
    steps: Annotated[int, typer.Option(help="Time points of the solve.")] = 10,
    guidance: Annotated[float, typer.Option(help="Weight of classifier-free guidance.")] = 0.5,
    fixture: Annotated[
        Path | None,
        typer.Option(help="transformers' expected_audio_regression.json: compare with the waveform stored there."),
    ] = None,
    noise: Annotated[Path | None, typer.Option(help="With --fixture: the noise it was made with, npy [T, 80].")] = None,
    float64: Annotated[
        bool, typer.Option("--float64", help="Also measure both against this engine in float64: twice the memory.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Render with transformers and with this engine from the same noise, and say how far apart they are.

    The bars: same length, mel and vocoder within 1e-5 of the reference's largest value, and those published for
    vLLM-Omni's block-sparse engine: waveform correlation of at least 0.99982, mel within 6e-6. Two more are told and no
    failure where they are missed, because the reference's own rounding can exceed them: the published mel bar, which is
    absolute, and 1e-5 for the waveform of the whole chain. --float64 shows who is how far from the exact result.

    With --fixture, transformers' stored waveform is the reference; it was made with a voice and a noise that the file
    does not name, so both have to be given.
    """
    from ..errors import OptionError
    from . import verification

    if fixture is None and noise is not None:
        raise OptionError("--noise: got it without --fixture, expected both; without a fixture --seed makes the noise")
    if fixture is not None:
        rows, about = verification.against_fixture(model, fixture, voice, noise)
    else:
        rows, about = verification.against_transformers(
            model, codes, voice, seed, {"steps": steps, "guidance": guidance}, float64
        )
    _report(rows, about, json)
    if any(row.binding and not row.passed for row in rows):
        raise typer.Exit(DIFFERENT)


def _report(rows: list[Comparison], about: dict[str, Any], json: bool) -> None:
    if json:
        put_json(
            {
                **about,
                "rows": [vars(row) for row in rows],
                "passed": all(row.passed or not row.binding for row in rows),
            },
            indent=2,
        )
        return
    for key, value in about.items():
        note(f"{key.replace('_', ' ')}: {value}")
    cells = [(row.stage, row.figure, _number(row.value), row.bar or "", _verdict(row)) for row in rows]
    put_table("this engine against the reference", cells, ("stage", "figure", "value", "bar", "verdict"))


def _verdict(row: Comparison) -> str:
    if row.bar is None:
        return ""
    if row.passed:
        return "passes"
    return "FAILS" if row.binding else "above, see below"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) and value > 1 else f"{value:.9g}" if value > 0.5 else f"{value:.2e}"
