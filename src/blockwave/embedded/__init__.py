# SPDX-License-Identifier: Apache-2.0
"""The voice inside the package: a small checkpoint in the released layout, and sentences that it was not trained on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..codes_file import CodesFile

FOLDER = Path(__file__).parent
FAMILY = "blockwave-heart"
CODEBOOK = "634e8597944f7af5"


def is_embedded_family(name: str) -> bool:
    """Whether codes of this family are the embedded voice's."""
    return name == FAMILY


def held_out() -> list[CodesFile]:
    """Sentences with their codes, none of them used in training; the first 30 are plain, the others harder."""
    content = json.loads((FOLDER / "held_out.json").read_text(encoding="utf-8"))
    return [CodesFile(np.array(row["codes"]), FAMILY, 50, CODEBOOK, row["text"]) for row in content["sentences"]]
