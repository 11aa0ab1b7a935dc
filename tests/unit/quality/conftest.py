# SPDX-License-Identifier: Apache-2.0
"""A tiny checkpoint, loaded once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blockwave import Token2Wav
from blockwave.codes_file import CodesFile
from blockwave.weights.make import make_checkpoint


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("quality") / "model", "tiny", seed=1)


@pytest.fixture(scope="session")
def model(folder) -> Token2Wav:
    return Token2Wav.from_pretrained(folder)


@pytest.fixture(scope="session")
def sentences() -> list[CodesFile]:
    rng = np.random.default_rng(0)
    return [CodesFile(rng.integers(1, 8192, count), text=f"sentence of {count} codes") for count in (50, 41, 62)]
