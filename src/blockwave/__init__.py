# SPDX-License-Identifier: Apache-2.0
"""Blockwave turns the speech codes of omni models into sound: exact, block-sparse, for Qwen2.5-Omni's Token2Wav."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .codes import Codes, Family
    from .codes_file import CodesFile, load_codes
    from .config import Token2WavConfig
    from .engine import SpeechStream, Token2Wav
    from .errors import (
        AudioError,
        BlockwaveError,
        CheckpointError,
        CodesError,
        ConfigError,
        MissingExtraError,
        OptionError,
        VoiceError,
    )
    from .ops.block_attention import block_sparse_attention
    from .speech import Speech, SpeechChunk, StreamTimings, Timings
    from .voice import Voice

__version__ = "0.1.0"

__all__ = [
    "AudioError",
    "BlockwaveError",
    "CheckpointError",
    "Codes",
    "CodesError",
    "CodesFile",
    "ConfigError",
    "Family",
    "MissingExtraError",
    "OptionError",
    "Speech",
    "SpeechChunk",
    "SpeechStream",
    "StreamTimings",
    "Timings",
    "Token2Wav",
    "Token2WavConfig",
    "Voice",
    "VoiceError",
    "__version__",
    "block_sparse_attention",
    "load_codes",
]

# A name is imported when it is first asked for (PEP 562): reading codes, or the help of the command line, does not
# wait seconds for torch.
_PLACES = {
    "Codes": "codes",
    "CodesFile": "codes_file",
    "Family": "codes",
    "Speech": "speech",
    "SpeechChunk": "speech",
    "SpeechStream": "engine",
    "StreamTimings": "speech",
    "Timings": "speech",
    "Token2Wav": "engine",
    "Token2WavConfig": "config",
    "Voice": "voice",
    "block_sparse_attention": "ops.block_attention",
    "load_codes": "codes_file",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_PLACES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
