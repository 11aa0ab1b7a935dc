# SPDX-License-Identifier: Apache-2.0
"""Requests in, sound out: where the rooms are put together."""

from .engine import Engine, Rendering
from .live import SpeechChunk, SpeechStream
from .request import Flow, Request
from .token2wav import Token2Wav

__all__ = ["Engine", "Flow", "Rendering", "Request", "SpeechChunk", "SpeechStream", "Token2Wav"]
