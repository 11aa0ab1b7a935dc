# SPDX-License-Identifier: Apache-2.0
"""Sound to codes, for checkpoints that publish their codebook."""

from .codebook import Codebook
from .log_mel import log_mel, reference_mel
from .sound import Sound, read_sound

__all__ = ["Codebook", "Sound", "log_mel", "read_sound", "reference_mel"]
