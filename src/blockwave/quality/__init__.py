# SPDX-License-Identifier: Apache-2.0
"""How far one rendering is from another."""

from .exactness import (
    CORRELATION_BAR,
    EXACT_BAR,
    MEL_BAR,
    Comparison,
    compare,
    correlation,
    largest_difference,
    share_of_largest,
)

__all__ = [
    "CORRELATION_BAR",
    "EXACT_BAR",
    "MEL_BAR",
    "Comparison",
    "compare",
    "correlation",
    "largest_difference",
    "share_of_largest",
]
