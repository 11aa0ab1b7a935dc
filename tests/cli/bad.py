# SPDX-License-Identifier: Apache-2.0
"""One row of the tables of what people get wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bad:
    """One way to go wrong.

    Attributes:
        args: the arguments, as typed.
        code: exit code.
        message: what follows ``error: ``; ``...`` stands for words of another package, which change with its version.
        files: files in the current folder, beside ``model`` and ``a.json``.
        stdin: content of standard input.
    """

    args: str
    code: int
    message: str
    files: Mapping[str, bytes | Callable[[], bytes]] = field(default_factory=dict)
    stdin: bytes = b""
