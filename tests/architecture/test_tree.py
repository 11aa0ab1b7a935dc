# SPDX-License-Identifier: Apache-2.0
"""The house is in order."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.architecture import checks, rules

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "check",
    [
        checks.import_directions,
        checks.third_party_doors,
        checks.licence_headers,
        checks.file_sizes,
        checks.forbidden_text,
        checks.broad_excepts,
        checks.vague_names,
        checks.stage_habits,
    ],
    ids=lambda check: check.__name__,
)
def test_tree(check):
    complaints = check(ROOT)
    assert not complaints, "\n".join(complaints)


def test_import_loads_nothing_from_behind_a_door():
    assert checks.loaded_by_import(ROOT / "src") == []


def test_large_files_are_named():
    """Never fails: a growing file shows up in the summary of warnings."""
    for complaint in checks.file_sizes(ROOT, rules.LARGE_LINES):
        warnings.warn(f"large file: {complaint}", stacklevel=1)
