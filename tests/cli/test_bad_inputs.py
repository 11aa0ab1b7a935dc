# SPDX-License-Identifier: Apache-2.0
"""Every row of the table: its exact message, its exit code, nothing on standard output, and no file left behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli import bad_codes, bad_quality, bad_sounds, bad_uses
from tests.cli.bad import Bad
from tests.cli.conftest import tree

TABLE = {
    f"{group}, {name}": row
    for group, rows in (
        ("codes", bad_codes.CODES),
        ("output", bad_uses.OUTPUTS),
        ("option", bad_uses.OPTIONS),
        ("voice or checkpoint", bad_uses.VOICES_AND_CHECKPOINTS),
        ("other", bad_uses.OTHERS),
        ("sound", bad_sounds.SOUNDS),
        ("measurement", bad_sounds.OTHERS),
        ("comparison", bad_quality.COMPARISONS),
        ("study", bad_quality.STUDIES),
    )
    for name, row in rows.items()
}


def matches(text: str, message: str) -> bool:
    """Equal, where ``...`` stands for anything on the line."""
    return re.fullmatch(".*".join(map(re.escape, message.split("..."))), text) is not None


@pytest.mark.parametrize("bad", TABLE.values(), ids=TABLE)
def test_message_and_code(run, place, bad: Bad):
    for name, content in bad.files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content())
    before = tree(place)
    result = run(*bad.args.split(), stdin=bad.stdin)
    assert result.err.count("\n") == 1
    assert matches(result.err, f"error: {bad.message}\n"), result.err
    assert (result.code, result.out) == (bad.code, b"")
    assert tree(place) == before


def test_there_are_many():
    assert len(TABLE) >= 60
