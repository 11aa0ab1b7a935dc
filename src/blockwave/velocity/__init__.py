# SPDX-License-Identifier: Apache-2.0
"""v(x, t | condition) on a batch of blocks."""

from .condition import Condition, PackedConditions, VoiceRows
from .dit import DiT
from .guidance import MIN_GUIDANCE

__all__ = ["MIN_GUIDANCE", "Condition", "DiT", "PackedConditions", "VoiceRows"]
