# SPDX-License-Identifier: Apache-2.0
"""The only door to huggingface_hub: a folder, or a hub id of which only this stage's files are fetched."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..embedded import FOLDER as EMBEDDED_FOLDER
from ..errors import CheckpointError, MissingExtraError, OptionError
from .files import CONFIG_FILE, INDEX_FILE, SINGLE_FILE, read_json, stage_shards
from .voices import SPEAKERS_FILE

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_OFFLINE = (
    "it is not in the hub cache and could not be fetched; connect to the network once, "
    "or download the checkpoint elsewhere and pass its folder"
)
_NO_FILE = "the repository has no such file; expected a checkpoint in safetensors format with a token2wav stage"
_COMMIT = re.compile(r"[0-9a-f]{40}")

log = logging.getLogger(__name__)


def resolve(
    source: str | os.PathLike[str] | None = None,
    *,
    revision: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
) -> Path:
    """The checkpoint folder that ``source`` means.

    None means the voice inside the package. An existing folder is returned as it is.
    A hub id such as ``Qwen/Qwen2.5-Omni-7B`` is fetched into the hub cache:
    ``config.json``, the index, ``spk_dict.pt`` if the repository has one, and of the shards only those that hold
    token2wav tensors; all from one commit.

    Args:
        revision: branch, tag or commit of the hub repository.
        cache_dir: hub cache; None for huggingface_hub's own default.
        local_files_only: use what the cache holds, ask nobody.

    Raises:
        MissingExtraError: a hub id, and huggingface_hub is not installed.
        OptionError: ``revision`` together with a folder.
        CheckpointError: neither folder nor hub id; the repository, the revision or the files cannot be had.
    """
    if source is None:
        return EMBEDDED_FOLDER
    try:
        folder = Path(source).expanduser()
        folder.is_dir()
    except (RuntimeError, OSError, ValueError) as error:  # no such user, a name too long, a NUL
        raise CheckpointError(f"{str(source)[:80]}: no such folder ({error}); check the path") from None
    if folder.is_dir():
        if revision is not None:
            raise OptionError(
                f"revision: got {revision!r} for the folder {folder}, which has no revisions; "
                "leave it out or pass a hub id"
            )
        return folder
    if folder.exists():
        raise CheckpointError(f"{folder}: got a file, expected the folder that holds it or a hub id")
    name = os.fspath(source)
    if not isinstance(source, str) or not _HUB_ID.fullmatch(name):
        raise CheckpointError(
            f"{name}: no such folder, and no hub id such as Qwen/Qwen2.5-Omni-7B; check the path, or make a random "
            "checkpoint with `blockwave make-checkpoint`"
        )
    try:
        from huggingface_hub import errors, hf_hub_download
    except ImportError:
        raise MissingExtraError(
            f"{name}: no such folder, and as a hub id it needs huggingface_hub, which is not installed; "
            'run: pip install "blockwave[hub]"'
        ) from None

    def failure(file: str, advice: str) -> str:
        return f"{name}: no such folder, and cannot get {file} from the hub: {advice}"

    def get(file: str, revision: str | None) -> Path:
        options: dict[str, Any] = {"cache_dir": cache_dir, "local_files_only": local_files_only}
        try:
            return Path(hf_hub_download(name, file, revision=revision, **options))
        except errors.GatedRepoError:
            advice = "the repository is gated; accept its terms on huggingface.co and log in with `hf auth login`"
        except errors.RepositoryNotFoundError:
            advice = "no such public repository; check the spelling, or log in with `hf auth login` if it is private"
        except errors.RevisionNotFoundError:
            advice = f"no revision {revision!r}; check its name"
        except errors.LocalEntryNotFoundError:
            raise _AbsentError(failure(file, _OFFLINE)) from None
        except errors.EntryNotFoundError:
            raise _AbsentError(failure(file, _NO_FILE)) from None
        except (errors.HfHubHTTPError, OSError, ValueError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            advice = f"{reason}; try again, or download the checkpoint elsewhere and pass its folder"
        raise CheckpointError(failure(file, advice))

    return _fetch(name, get, revision)


class _AbsentError(CheckpointError):
    """The repository, or the cache while offline, has no such file."""


def _fetch(name: str, get: Callable[[str, str | None], Path], revision: str | None) -> Path:
    config = get(CONFIG_FILE, revision)
    if _COMMIT.fullmatch(config.parent.name):
        revision = config.parent.name  # a branch may move between two downloads
    try:
        index = get(INDEX_FILE, revision)
    except _AbsentError as no_index:
        try:
            get(SINGLE_FILE, revision)
        except _AbsentError:
            raise no_index from None
    else:
        for file in sorted(set(stage_shards(read_json(index), index).values())):
            get(file, revision)
    try:
        get(SPEAKERS_FILE, revision)
    except _AbsentError:
        log.warning("%s: got no %s; pass a voice of your own, e.g. Voice.load(path)", name, SPEAKERS_FILE)
    return config.parent
