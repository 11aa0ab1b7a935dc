# SPDX-License-Identifier: Apache-2.0
"""Block-sparse attention: every block of frames attends to itself and to a few neighbours."""

from .api import block_attention, block_sparse_attention
from .layout import BlockLayout

__all__ = ["BlockLayout", "block_attention", "block_sparse_attention"]
