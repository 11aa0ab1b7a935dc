# SPDX-License-Identifier: Apache-2.0
"""The vocoder: mel [B, T, M] to samples [B, L]."""

from .bigvgan import BigVGAN
from .reach import Reach, receptive_field
from .streaming import StreamingVocoder, StreamState
from .windows import vocode, vocode_into

__all__ = ["BigVGAN", "Reach", "StreamState", "StreamingVocoder", "receptive_field", "vocode", "vocode_into"]
