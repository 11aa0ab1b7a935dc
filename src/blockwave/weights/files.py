# SPDX-License-Identifier: Apache-2.0
"""Which files of a checkpoint folder hold this stage, found without opening the others.

Files may be links (a hub cache links ``snapshots/<commit>/<name>`` to ``blobs/<hash>``). Names written *inside* an
index are another matter: they must stay inside the folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from .. import arrays
from ..errors import CheckpointError
from .keymap import stage_name

CONFIG_FILE = "config.json"
INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"

_EXPECTED_FOLDER = "expected a folder with config.json and safetensors files, as `blockwave make-checkpoint` writes it"
_WHAT = "the JSON of a checkpoint as published, in a folder with its safetensors files"


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        CheckpointError: no such file, not readable, broken JSON, or no object.
    """
    where = str(path)
    text = arrays.read_text(arrays.read_bytes(path, CheckpointError, _WHAT), where, CheckpointError)
    value = arrays.read_json(text, where, CheckpointError)
    if not isinstance(value, dict):
        raise CheckpointError(
            f"{path}: got {type(value).__name__}, expected a JSON object; is it another file's content?"
        )
    return value


def stage_shards(index: Mapping[str, Any], where: Path) -> dict[str, str]:
    """Tensor name -> shard file for the tensors of this stage, from a parsed index.

    Raises:
        CheckpointError: no weight_map, nothing of this stage in it, or a file name that leaves the folder.
    """
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict):
        raise CheckpointError(f"{where}: got no weight_map, expected tensor names with the file that holds each")
    ours = {name: file for name, file in weight_map.items() if stage_name(name) is not None}
    if not ours:
        raise no_stage_error(where, list(weight_map))
    for name, file in ours.items():
        if not isinstance(file, str) or not _stays_inside(file):
            raise CheckpointError(
                f"{where}: {name} is in file {file!r}, expected a file name inside the folder; "
                "a path that is absolute or climbs out is refused, do not use this index"
            )
    return ours


def stage_files(folder: Path) -> tuple[list[Path], dict[str, Path]]:
    """The files to open, and where the index (if there is one) places each tensor of this stage.

    An index wins over a single ``model.safetensors`` beside it.

    Raises:
        CheckpointError: no weights in the folder, a broken index, or missing shards (all of them named).
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder; {_EXPECTED_FOLDER}")
    index = folder / INDEX_FILE
    if not os.path.lexists(index):  # a dangling link is a broken cache, not a single file
        single = folder / SINGLE_FILE
        if not single.is_file():
            raise CheckpointError(f"{folder}: got neither {INDEX_FILE} nor {SINGLE_FILE}; {_EXPECTED_FOLDER}")
        return [single], {}
    ours = stage_shards(read_json(index), index)
    counts = Counter(ours.values())
    absent = sorted(file for file in counts if not (folder / file).is_file())
    if absent:
        listed = ", ".join(f"{file} ({counts[file]} tensors)" for file in absent)
        raise CheckpointError(
            f"{folder}: missing {listed}; expected every shard that {INDEX_FILE} names for token2wav; "
            "download these files, the other shards are not needed"
        )
    return [folder / file for file in sorted(counts)], {name: folder / file for name, file in ours.items()}


def _stays_inside(file: str) -> bool:
    posix, windows = PurePosixPath(file), PureWindowsPath(file)
    return bool(posix.name) and not posix.is_absolute() and not windows.anchor and ".." not in windows.parts


def no_stage_error(where: Path, names: list[str]) -> CheckpointError:
    """What to say about a checkpoint of other stages only."""
    seen = ", ".join(sorted({name.split(".")[0] for name in names})[:8]) or "nothing"
    return CheckpointError(
        f"{where}: got no tensor of a Token2Wav stage (found {seen}), expected names under token2wav.; "
        "use a checkpoint with audio output, e.g. Qwen/Qwen2.5-Omni-7B"
    )
