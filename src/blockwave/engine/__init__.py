# SPDX-License-Identifier: Apache-2.0
"""Requests in, sound out: where the rooms are put together."""

from .counters import Counters
from .engine import Engine
from .live import SpeechStream
from .request import Flow, Request
from .token2wav import Token2Wav

__all__ = ["Counters", "Engine", "Flow", "Request", "SpeechStream", "Token2Wav"]
