# SPDX-License-Identifier: Apache-2.0
"""Random checkpoints in the real layout, for tests, benchmarks and demonstrations. They speak no language."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from ..config import Token2WavConfig
from ..errors import OptionError
from ..mel.noise import check_seed
from .files import CONFIG_FILE, INDEX_FILE, SINGLE_FILE
from .keymap import WHOLE_MODEL_PREFIX, Shape, shapes
from .presets import Size, config_json
from .random_values import MEL_CEILING, MEL_FLOOR, MEL_MEAN, MEL_STD, random_tensor
from .voices import SPEAKERS_FILE

# Released speakers and their first text token; other names get the next numbers.
_BOS_TOKENS = {"Chelsie": 151872, "Ethan": 151870}
_REFERENCE_FRAMES = (400, 300, 350, 250)
# A few small tensors of the stages that are none of our business, so that readers are seen to leave them alone.
_OTHERS: tuple[tuple[str, Shape], ...] = (
    ("thinker.model.embed_tokens.weight", (16, 8)),
    ("thinker.model.layers.0.self_attn.q_proj.weight", (8, 8)),
    ("thinker.lm_head.weight", (16, 8)),
    ("talker.model.embed_tokens.weight", (12, 4)),
    ("talker.codec_head.weight", (12, 4)),
)

_Entry = tuple[str, Shape, str]  # name, shape, dtype as safetensors writes it


def make_checkpoint(
    folder: str | os.PathLike[str],
    size: Size = "tiny",
    shards: int = 1,
    seed: int = 0,
    voices: Sequence[str] = ("Chelsie", "Ethan"),
    *,
    older_keys: bool = False,
    overwrite: bool = False,
) -> Path:
    """Writes config.json, safetensors shards with an index, and spk_dict.pt; returns the folder.

    The same arguments give the same files. With ``shards=1`` there is one ``model.safetensors`` and no index; else the
    first shard holds other stages only. One tensor at a time is in memory. The folder appears when it is complete.

    Args:
        size: "tiny" (1.2 M parameters), "small" (12.3 M) or "full" (449.05 M, 1.8 GB, the released sizes).
        voices: names in spk_dict.pt; none leaves the file out.
        older_keys: write the configuration under the names of the first released files.
        overwrite: replace a checkpoint that is already there.

    Raises:
        OptionError: an unknown size, fewer than one shard, or a folder that is not empty.
    """
    if not 1 <= shards <= 99:
        raise OptionError(f"shards: got {shards}, expected 1 to 99")
    check_seed(seed)
    settings = config_json(size, older_keys=older_keys) | {"blockwave": {"random": True}}
    config = Token2WavConfig.from_dict(settings)
    folder = Path(folder)
    _check_target(folder, overwrite)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    beside.mkdir()
    try:
        (beside / CONFIG_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        _write_weights(beside, config, shards, seed)
        if voices:
            speakers = {name: _speaker(name, i, config, seed) for i, name in enumerate(voices)}
            torch.save(speakers, beside / SPEAKERS_FILE)
        if folder.exists():
            shutil.rmtree(folder)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def write_safetensors(path: Path, entries: Sequence[_Entry], values: Callable[[str], Tensor]) -> int:
    """Writes tensors one at a time, in order, and returns the bytes of data.

    Format: README of github.com/huggingface/safetensors.
    """
    widths = {"F32": 4, "BF16": 2}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape, dtype in entries:
        start, end = end, end + torch.Size(shape).numel() * widths[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, _, _ in entries:
            _write_data(file, values(name))
    return end


def _write_data(file: BinaryIO, tensor: Tensor) -> None:
    flat = tensor.reshape(-1)
    file.write(flat.view(torch.int16 if tensor.element_size() == 2 else torch.int32).numpy().data)


def _write_weights(folder: Path, config: Token2WavConfig, shards: int, seed: int) -> None:
    ours: list[_Entry] = [(WHOLE_MODEL_PREFIX + name, shape, "F32") for name, shape in shapes(config).items()]
    others: list[_Entry] = [(name, shape, "BF16") for name, shape in _OTHERS]

    def values(name: str) -> Tensor:
        own = name.removeprefix(WHOLE_MODEL_PREFIX)
        if own != name:
            return random_tensor(own, shape_of[name], config, seed)
        return torch.full(shape_of[name], 0.5, dtype=torch.bfloat16)

    shape_of = {name: shape for name, shape, _ in ours + others}
    if shards == 1:
        write_safetensors(folder / SINGLE_FILE, others + ours, values)
        return
    parts = [others[:2], *_split(ours, shards - 1)]
    for i, entry in enumerate(others[2:]):
        parts[1 + i % (shards - 1)].insert(0, entry)
    weight_map, total = {}, 0
    for i, part in enumerate(parts, start=1):
        file = f"model-{i:05}-of-{shards:05}.safetensors"
        total += write_safetensors(folder / file, part, values)
        weight_map |= {name: file for name, _, _ in part}
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / INDEX_FILE).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _split(entries: list[_Entry], count: int) -> list[list[_Entry]]:
    """``count`` runs of about equal size."""
    total, done = sum(torch.Size(shape).numel() for _, shape, _ in entries), 0
    parts: list[list[_Entry]] = [[] for _ in range(count)]
    for entry in entries:
        parts[min(done * count // total, count - 1)].append(entry)
        done += torch.Size(entry[1]).numel()
    return parts


def _speaker(name: str, number: int, config: Token2WavConfig, seed: int) -> dict[str, object]:
    """A random speaker: the reference wanders slowly around a spectrum of its own, as the mel of a voice does."""
    frames = _REFERENCE_FRAMES[number % len(_REFERENCE_FRAMES)]
    generator = torch.Generator().manual_seed(1_000_003 * (seed + 1) + number)
    steps = torch.randn(frames, config.dit.mel_dim, generator=generator)
    spectrum = torch.randn(config.dit.mel_dim, generator=generator)
    mel, rows = torch.zeros_like(spectrum), []
    for step in steps:
        mel = 0.9 * mel + (1 - 0.9**2) ** 0.5 * step
        rows.append(MEL_MEAN + MEL_STD * (0.6 * spectrum + 0.8 * mel))
    return {
        "bos_token": _BOS_TOKENS.get(name, 151873 + number),
        "cond": torch.randn(1, config.dit.xvector_dim, generator=generator),
        "ref_mel": torch.stack(rows)[None].clamp(MEL_FLOOR, MEL_CEILING),
    }


def _check_target(folder: Path, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder}: got a file, expected a folder to write a checkpoint into; choose another name")
    content = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if not content:
        return
    if not overwrite:
        raise OptionError(
            f"{folder}: the folder is not empty; choose another one, or ask to overwrite the checkpoint in it"
        )
    alien = [name for name in content if not _is_ours(name)]
    if alien:
        raise OptionError(
            f"{folder}: holds {', '.join(alien[:5])}, which no checkpoint of ours has; only a checkpoint is "
            "overwritten, choose another folder or empty it yourself"
        )


def _is_ours(name: str) -> bool:
    return name in (CONFIG_FILE, INDEX_FILE, SPEAKERS_FILE) or (
        name.startswith("model") and name.endswith(".safetensors")
    )
