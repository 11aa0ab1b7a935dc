# SPDX-License-Identifier: Apache-2.0
"""``blockwave bench``: how long this stage takes here."""

from __future__ import annotations

import statistics
import time
from typing import Annotated, Any

import typer

from . import options
from .streams import note, put_json, put_table

bench = typer.Typer(help="Measurements on this machine.")


@bench.callback()
def _group() -> None:
    pass


@bench.command("stage")
def bench_stage(
    model: options.Model = None,
    codes: Annotated[int, typer.Option(help="Codes of each request; 50 are a second.")] = 100,
    batch: Annotated[int, typer.Option(help="Requests that are rendered together.")] = 1,
    repeats: Annotated[int, typer.Option(help="Warm runs; their median is reported.")] = 3,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32 is exact.")] = "float32",
    threads: Annotated[int | None, typer.Option(help="CPU threads; else torch's choice.")] = None,
    preset: options.Preset = "exact",
    steps: Annotated[int | None, typer.Option(help="Time points of the solve. Without it the preset's.")] = None,
    json: options.Json = False,
) -> None:
    """Time codes -> sound: loading, the first run, warm runs, each part. RTF is compute time / audio time."""
    import numpy as np

    from ..engine import Token2Wav
    from ..engine.presets import flow_of
    from ..errors import OptionError
    from .doctor import examine

    for name, value in (("codes", codes), ("batch", batch), ("repeats", repeats)):
        if value < 1:
            raise OptionError(f"{name}: got {value}, expected an integer >= 1")
    options.set_threads(threads)
    flow = flow_of(preset, steps)
    environment = examine(device, dtype)
    folder, config = options.open_checkpoint(model)
    started_s = time.perf_counter()
    loaded = Token2Wav.from_pretrained(folder, device=device, dtype=dtype)
    load_s = time.perf_counter() - started_s
    longest = config.dit.max_position_embeddings // config.clock.frames_per_code
    if codes > longest or batch * codes > 10 * longest:
        raise OptionError(f"codes: got {batch} x {codes}, expected at most {longest} each and {10 * longest} in all")
    legal = np.setdiff1d(np.arange(1, config.dit.num_embeds + 1), sorted(config.family.special))
    sequences = np.random.default_rng(0).choice(legal, (batch, codes))
    runs: list[dict[str, float]] = []
    speeches = []
    for i in range(1 + repeats):
        speeches = loaded(sequences, seed=0, preset=preset, steps=steps)
        parts = {id(speech.timings): speech.timings for speech in speeches}.values()
        runs.append({part: sum(getattr(t, part) for t in parts) for part in _PARTS})
        note(f"{'cold' if i == 0 else 'warm'}: {sum(runs[-1].values()):.2f} s")
    audio_s = sum(speech.duration_s for speech in speeches)
    if abs(audio_s - batch * config.clock.duration_s(codes)) > 1e-9:
        raise OptionError(f"audio: got {audio_s} s, expected {batch * config.clock.duration_s(codes)} s")
    warm = {part: statistics.median(run[part] for run in runs[1:]) for part in _PARTS}
    content: dict[str, Any] = {
        "checkpoint": str(folder),
        "random_weights": config.random,
        "codes": codes,
        "batch": batch,
        "preset": preset,
        "steps": flow.steps,
        "audio_s": audio_s,
        "load_s": load_s,
        "cold": _figures(runs[0], audio_s),
        "warm": _figures(warm, audio_s),
        "warm_runs": repeats,
        "environment": environment,
    }
    if json:
        put_json(content, indent=2)
        return
    rows = [(key, *(f"{content[run][key]:.3f}" for run in ("cold", "warm"))) for key in content["cold"]]
    title = f"{audio_s:.2f} s of sound, {batch} request{'s' * (batch > 1)}, loaded in {load_s:.2f} s"
    put_table(title, rows, ("", "cold", "warm"))


_PARTS = ("condition_s", "flow_s", "vocoder_s")


def _figures(run: dict[str, float], audio_s: float) -> dict[str, float]:
    total_s = sum(run.values())
    return {**run, "total_s": total_s, "rtf": total_s / audio_s, "flow_rtf": run["flow_s"] / audio_s}
