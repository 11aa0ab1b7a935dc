# SPDX-License-Identifier: Apache-2.0
"""What an earlier run left in a folder: whether a sound file is whole."""

from __future__ import annotations

import wave
from pathlib import Path

from ..audio import Format


def is_whole(path: Path, format: Format, num_samples: int) -> bool:
    """Whether ``path`` holds as many mono samples as a run would write there now."""
    if not path.is_file():
        return False
    if format.name == "pcm":
        return path.stat().st_size == 2 * num_samples
    if format.container is None:
        try:
            with wave.open(str(path), "rb") as file:
                return file.getnframes() == num_samples and len(file.readframes(num_samples)) == 2 * num_samples
        except (wave.Error, EOFError):
            return False
    import soundfile

    try:
        # Decoded, since a header may promise more than a cut file holds.
        return len(soundfile.read(str(path), dtype="int16")[0]) == num_samples
    except soundfile.SoundFileError:
        return False
