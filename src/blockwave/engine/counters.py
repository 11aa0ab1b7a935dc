# SPDX-License-Identifier: Apache-2.0
"""What an engine has done since it was made, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counters:
    """Totals. A task is one segment of the network at one evaluation of one block.

    Attributes:
        batches, tasks: of the network.
        blocks: in all batches of the network, branches counted.
        flow_s: wall time of the batches of the network.
        vocoder_batches, vocoder_s: the same of the vocoder.
        audio_s: sound made.
        requests: that were rendered as a whole.
        streams: live ones that were opened.
        streams_finished, streams_failed: of them; those neither finished, nor failed, nor open were cancelled.
    """

    batches: int = 0
    tasks: int = 0
    blocks: int = 0
    flow_s: float = 0.0
    vocoder_batches: int = 0
    vocoder_s: float = 0.0
    audio_s: float = 0.0
    requests: int = 0
    streams: int = 0
    streams_finished: int = 0
    streams_failed: int = 0

    def rendered(self, requests: int, audio_s: float) -> None:
        """So many whole requests."""
        self.requests += requests
        self.audio_s += audio_s

    def vocoded(self, started_s: float, ended_s: float) -> None:
        """One batch of the vocoder."""
        self.vocoder_batches += 1
        self.vocoder_s += ended_s - started_s
