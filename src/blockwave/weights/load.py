# SPDX-License-Identifier: Apache-2.0
"""Checkpoint -> modules: strict, memory-mapped, straight into the parameters, only this stage's tensors."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..config import Token2WavConfig
from ..errors import CheckpointError, ConfigError
from .files import CONFIG_FILE, no_stage_error, read_json, stage_files
from .keymap import Slot, is_dropped, keymap, stage_name

MAX_LISTED = 50
_FLOATS = {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"}


class TensorsError(CheckpointError):
    """Tensors that do not fit the configuration. The message lists up to 50 of each kind, ``problems`` all of them.

    Attributes:
        problems: kind ("missing", "unexpected", ...) -> one line per tensor, sorted.
    """

    def __init__(self, where: Path, problems: dict[str, list[str]], advice: str) -> None:
        self.problems = {kind: sorted(lines) for kind, lines in problems.items() if lines}
        counts = ", ".join(f"{len(lines)} {kind}" for kind, lines in self.problems.items())
        text = [f"{where}: the tensors do not fit: {counts}; {advice}"]
        for kind, lines in self.problems.items():
            text += [f"  {kind}: {line}" for line in lines[:MAX_LISTED]]
            if len(lines) > MAX_LISTED:
                text.append(f"  {kind}: ... and {len(lines) - MAX_LISTED} more")
        super().__init__("\n".join(text))


@dataclass
class _Found:
    """Headers only: what the files hold for this stage."""

    handles: dict[str, tuple[Any, str]] = field(default_factory=dict)  # stage name -> open file, name in it
    twice: list[str] = field(default_factory=list)


def load_config(folder: str | os.PathLike[str]) -> Token2WavConfig:
    """Reads ``config.json``.

    Raises:
        CheckpointError: the file is missing or broken.
        ConfigError: its values are incomplete or contradict each other.
    """
    path = Path(folder) / CONFIG_FILE
    try:
        return Token2WavConfig.from_dict(read_json(path))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


@torch.no_grad()
def load_into(dit: nn.Module, vocoder: nn.Module, folder: str | os.PathLike[str], config: Token2WavConfig) -> None:
    """Fills the parameters of both modules from the checkpoint in ``folder``.

    Parameters must have memory (``to_empty`` after building under ``torch.device("meta")``); their device and dtype
    stay, float values of any width are converted. Nothing is copied before every name, shape and dtype is
    checked. The files are memory-mapped: private memory grows by the parameters and at most one tensor. Buffers are
    not touched. Afterwards every parameter is read once more to refuse NaN and infinity: one pass, one value back from
    the device.

    Raises:
        CheckpointError: files missing or broken; :class:`TensorsError` for names, shapes, dtypes, NaN and infinity.
    """
    folder, slots = Path(folder), keymap(config)
    parameters = _parameters(dit, vocoder, slots)
    with ExitStack() as stack:
        found = _open(folder, stack)
        _check(folder, slots, found)
        for slot in slots:
            handle, name = found.handles[slot.name]
            with _readable(folder):
                slot.store(parameters[slot.part, slot.target], handle.get_tensor(name))
    _check_finite(folder, slots, parameters)


def _parameters(dit: nn.Module, vocoder: nn.Module, slots: tuple[Slot, ...]) -> Mapping[tuple[str, str], Tensor]:
    """The parameters by (part, name); they must be exactly those of the table, with memory and the right sizes."""
    modules = {"dit": dit, "vocoder": vocoder}
    parameters = {(part, name): p for part, module in modules.items() for name, p in module.named_parameters()}
    rows, rest = Counter[tuple[str, str]](), {}
    for slot in slots:
        rows[slot.part, slot.target] += slot.shape[0]
        rest[slot.part, slot.target] = slot.shape[1:]
    for key in sorted(parameters.keys() | rest.keys()):
        got = list(parameters[key].shape) if key in parameters else "none"
        expected = [rows[key], *rest[key]] if key in rest else "none"
        if got != expected:
            raise CheckpointError(
                f"module {key[0]}, parameter {key[1]}: got shape {got}, expected {expected}; "
                "build the module from the same configuration that is passed here"
            )
        if parameters[key].is_meta:
            raise CheckpointError(
                f"module {key[0]}, parameter {key[1]}: got no memory (meta device); "
                "call module.to_empty(device=...) first"
            )
    return parameters


def _open(folder: Path, stack: ExitStack) -> _Found:
    found, seen = _Found(), []
    paths, placed = stage_files(folder)
    for path in paths:
        with _readable(path):
            handle = stack.enter_context(safe_open(path, "pt"))
            names = sorted(handle.keys())
        seen += names
        for name in names:
            key = stage_name(name)
            # A copy in a shard other than the index says is stale and not read.
            if key is None or is_dropped(key) or placed.get(name, path) != path:
                continue
            if key in found.handles:
                found.twice.append(f"{key}: as {found.handles[key][1]} and {name}")
            found.handles[key] = handle, name
    if not found.handles:
        raise no_stage_error(folder, seen)
    return found


def _check(folder: Path, slots: tuple[Slot, ...], found: _Found) -> None:
    expected = {slot.name: slot.shape for slot in slots}
    problems: dict[str, list[str]] = {
        "missing": [f"{name} {list(shape)}" for name, shape in expected.items() if name not in found.handles],
        "unexpected": [],
        "given twice": found.twice,
        "of another shape": [],
        "of a dtype that is no float": [],
    }
    for key, (handle, name) in found.handles.items():
        with _readable(folder):
            header = handle.get_slice(name)
            shape, dtype = tuple(header.get_shape()), header.get_dtype()
        if key not in expected:
            problems["unexpected"].append(f"{key} {list(shape)}")
            continue
        if shape != expected[key]:
            problems["of another shape"].append(f"{key}: got {list(shape)}, expected {list(expected[key])}")
        if dtype not in _FLOATS:
            problems["of a dtype that is no float"].append(f"{key}: got {dtype}, expected one of {sorted(_FLOATS)}")
    if any(problems.values()):
        advice = "expected exactly what config.json describes; check that both come from the same checkpoint"
        raise TensorsError(folder, problems, advice)


def _check_finite(folder: Path, slots: tuple[Slot, ...], parameters: Mapping[tuple[str, str], Tensor]) -> None:
    """Refuses NaN and infinity. A sum is finite only if all its terms are, and needs no copy of a mask."""
    sums = {key: p.sum(dtype=torch.float32) for key, p in parameters.items()}
    device = {value.device for value in sums.values()}
    if len(device) == 1 and bool(torch.stack(list(sums.values())).isfinite().all()):
        return
    bad = [slot for slot in slots if not slot.fetch(parameters[slot.part, slot.target]).isfinite().all()]
    if bad:
        dtypes = sorted({str(parameters[slot.part, slot.target].dtype).removeprefix("torch.") for slot in bad})
        advice = (
            f"expected finite numbers after conversion to {', '.join(dtypes)}; "
            "load in float32 if the file is sound, else download or export it again"
        )
        raise TensorsError(folder, {"with NaN or infinity": [slot.name for slot in bad]}, advice)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path}: cannot be read as safetensors ({error}); expected the whole file as published, an interrupted "
            "download or a Git LFS pointer looks like this: download it again"
        ) from None
