# SPDX-License-Identifier: Apache-2.0
"""``blockwave speak``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .streams import note


def _formats() -> list[str]:
    from ..audio import FORMATS

    return list(FORMATS)


def speak(
    codes: Annotated[
        list[str],
        typer.Argument(metavar="CODES...", help="Speech codes: json, npy, npz, txt, safetensors; - for stdin."),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", help="Sound file; DIR/ for a file per input; - for standard output.")
    ],
    model: options.Model = None,
    voice: Annotated[str | None, typer.Option(help="A voice of the checkpoint by name, or a voice file.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the noise: the same seed gives the same sound.")] = None,
    format: Annotated[
        str | None,
        typer.Option(help="wav, flac, ogg, opus, mp3, pcm (raw s16le); else as OUT ends.", autocompletion=_formats),
    ] = None,
    preset: options.Preset = "exact",
    steps: Annotated[
        int | None, typer.Option(help="Time points of the solve; 10 points are 9 steps. Without it the preset's.")
    ] = None,
    guidance: Annotated[float, typer.Option(help="Weight of classifier-free guidance; 0 turns it off.")] = 0.5,
    sway: Annotated[str, typer.Option(help="Warp of the time points, -1 to 1.75, or none.")] = "-1",
    solver: Annotated[str | None, typer.Option(help="rk4, rk2, midpoint or euler. Without it the preset's.")] = None,
    guidance_per: Annotated[
        str | None, typer.Option(help="evaluation, or step: guidance once a step. Without it the preset's.")
    ] = None,
    max_duration: Annotated[float | None, typer.Option(help="Longest sound in seconds; the rest is cut.")] = None,
    any_length: Annotated[
        bool, typer.Option("--any-length", help="Go beyond the length that the checkpoint was made for.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32 is exact; bfloat16, float16, float64.")] = "float32",
    threads: Annotated[int | None, typer.Option(help="CPU threads; else torch's choice.")] = None,
    batch: Annotated[int, typer.Option(help="Inputs that are computed together.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Write anew what is already whole in the folder.")] = False,
    json: options.Json = False,
) -> None:
    """Render speech codes to sound.

    Several inputs fill a folder. Run again, a folder half done is completed: what is whole there is kept.
    """
    from ..errors import OptionError
    from .failures import Failures
    from .jobs import plan

    jobs = plan(codes, out, format)
    if json and jobs[0].target is None:
        raise OptionError("--json: standard output carries the sound already; write a file, or leave one of them out")
    if batch < 1:
        raise OptionError(f"batch: got {batch}, expected an integer >= 1")
    warp = options.read_sway(sway)
    failures, inputs = Failures(len(jobs) > 1), []
    for job in jobs:
        with failures.reported(job.name):
            inputs.append((job, job.read()))
    if not inputs:
        failures.finish()

    from ..audio import check_encoder
    from ..codes import check_duration
    from ..engine import Token2Wav
    from ..engine.build import check_device, check_dtype
    from ..engine.presets import flow_of
    from ..engine.request import check_guidance, check_request
    from ..mel.noise import check_seed
    from .delivery import keep
    from .render import render

    # Everything that can be refused is refused before the weights are read.
    options.set_threads(threads)
    check_device(device)
    check_dtype(dtype)
    flow_of(preset, steps, warp, solver, guidance_per)
    check_guidance(guidance)
    if seed is not None:
        check_seed(seed)
    folder, config = options.open_checkpoint(model)
    check_encoder(jobs[0].format, config.sample_rate)
    spoken_by = options.find_voice(voice, folder, config)
    max_codes = check_duration(max_duration, config.clock)
    entries = []
    for job, file in inputs:
        with failures.reported(job.name):
            file.check_fits(config, job.name)
            checked = check_request(file.codes, config, max_codes, job.name, any_length)
            if force or not keep(job, len(checked), config.clock, json):
                entries.append((job, file.codes))
    if entries:
        if config.random:
            note(f"warning: {folder}: the weights are random; the sound is noise, not speech")
        loaded = Token2Wav.from_pretrained(folder, device=device, dtype=dtype)
        settings = {
            "voice": spoken_by,
            "seed": seed,
            "preset": preset,
            "steps": steps,
            "guidance": guidance,
            "sway": warp,
            "solver": solver,
            "guidance_per": guidance_per,
            "max_duration_s": max_duration,
            "any_length": any_length,
        }
        render(loaded, entries, batch, settings, failures, json)
    failures.finish()
