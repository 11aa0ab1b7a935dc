# SPDX-License-Identifier: Apache-2.0
"""``blockwave info``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import options
from .streams import put_json, put_table

if TYPE_CHECKING:
    from ..config import Token2WavConfig


def info(model: options.Model = None, json: options.Json = False) -> None:
    """Show what a checkpoint is: sizes, rates, and what depends on what. The weights are not read."""
    folder, config = options.open_checkpoint(model)
    content = describe(folder, config)
    if json:
        put_json(content, indent=2)
        return
    layers = content.pop("layers")
    put_table(str(folder), [(key.replace("_", " "), _text(value)) for key, value in content.items()])
    seen = [(str(row["layer"]), str(row["blocks_behind"]), str(row["blocks_ahead"])) for row in layers]
    put_table("attention reaches beyond its own block", seen, ("layer", "blocks behind", "blocks ahead"))


def describe(folder: Path, config: Token2WavConfig) -> dict[str, Any]:
    """Everything that ``info`` says, in JSON's types. Sizes are counted from the configuration."""
    from ..engine import Flow
    from ..waveform import receptive_field
    from ..weights.files import stage_files
    from ..weights.keymap import keymap
    from ..weights.voices import load_voices

    dit, clock, slots = config.dit, config.clock, keymap(config)
    parameters: Counter[str] = Counter()
    for slot in slots:
        size = 1
        for axis in slot.shape:
            size *= axis
        parameters[_part(slot.part, slot.target)] += size
    files, _ = stage_files(folder)
    reach = [dit.reach(layer) for layer in range(dit.num_layers)]
    behind, ahead = (sum(column) for column in zip(*reach, strict=True))
    flow, vocoder = Flow(), receptive_field(config.vocoder)
    evaluations = (len(flow.points) - 1) * len(flow.tableau.stages)
    block_s = clock.block_frames * clock.samples_per_frame / clock.sample_rate
    max_codes = dit.max_position_embeddings // clock.frames_per_code
    return {
        "checkpoint": str(folder),
        "random_weights": config.random,
        "family": config.family.name,
        "codebook": config.codebook,
        "voices": sorted(load_voices(folder)),
        "default_voice": config.default_voice,
        "files": {file.name: file.stat().st_size for file in files},
        "tensors": len(slots),
        "parameters": dict(parameters) | {"total": parameters.total()},
        "sizes": {
            "hidden": dit.hidden_size,
            "layers": dit.num_layers,
            "heads": dit.num_heads,
            "head": dit.head_dim,
            "codes": dit.num_embeds + 1,
            "mel_bins": dit.mel_dim,
            "xvector": dit.xvector_dim,
            "vocoder_channels": config.vocoder.initial_channels,
            "vocoder_stages": len(config.vocoder.upsample_rates),
        },
        "rates": {
            "sample_rate": clock.sample_rate,
            "codes_per_second": clock.codes_per_second,
            "frames_per_code": clock.frames_per_code,
            "samples_per_code": clock.samples_per_code,
            "frames_per_block": clock.block_frames,
            "seconds_per_block": block_s,
            "max_codes": max_codes,
            "max_seconds": clock.duration_s(max_codes),
        },
        "receptive_field": {
            "one_evaluation": {"blocks_behind": behind, "blocks_ahead": ahead},
            "one_solve": {
                "steps": flow.steps,
                "solver": flow.solver,
                "evaluations": evaluations,
                "blocks_behind": evaluations * behind,
                "blocks_ahead": evaluations * ahead,
                "seconds_behind": evaluations * behind * block_s,
                "seconds_ahead": evaluations * ahead * block_s,
            },
            "vocoder": {"frames_behind": vocoder.left, "frames_ahead": vocoder.right},
        },
        "layers": [
            {"layer": layer, "blocks_behind": back, "blocks_ahead": forward}
            for layer, (back, forward) in enumerate(reach)
        ],
    }


def _part(part: str, target: str) -> str:
    """The part of the network whose parameters are counted together."""
    if part == "vocoder":
        return "vocoder"
    room = target.split(".")[0]
    return room if room in ("speaker", "layers", "code_embedding") else "rest_of_dit"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key.replace('_', ' ')}: {_inner(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return _inner(value)


def _inner(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {_inner(entry)}" for key, entry in value.items())
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not said"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
