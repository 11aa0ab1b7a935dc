# SPDX-License-Identifier: Apache-2.0
"""The flows that are measured, and what the cheaper ones cost in sound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blockwave import Token2Wav
from blockwave.embedded import held_out

Flow = dict[str, Any]

DEFAULT: Flow = {"solver": "rk4", "steps": 10, "guidance": 0.5}
EULER_9: Flow = {"solver": "euler", "steps": 10, "guidance": 0.5}
EULER_4: Flow = {"solver": "euler", "steps": 5, "guidance": 0.5}
EULER_4_UNGUIDED: Flow = {"solver": "euler", "steps": 5, "guidance": 0.0}
EULER_2_UNGUIDED: Flow = {"solver": "euler", "steps": 3, "guidance": 0.0}


def name_of(flow: Flow) -> str:
    """Steps are one fewer than the time points that ``steps`` counts."""
    guided = f"guidance {flow['guidance']:g}" if flow["guidance"] else "no guidance"
    return f"{flow['solver']} {flow['steps'] - 1}, {guided}"


def distance(model: Token2Wav, flow: Flow, sequences: Sequence[np.ndarray]) -> float:
    """Mean absolute difference of the log-mel from the default flow's, same noise."""
    pairs = [(model(codes, seed=i, **flow), model(codes, seed=i, **DEFAULT)) for i, codes in enumerate(sequences)]
    return float(np.mean([np.abs(ours.mel - default.mel).mean() for ours, default in pairs]))


def tiled(num_codes: int, first: int = 0) -> np.ndarray:
    """So many codes of held-out sentences, one after another, from sentence ``first`` on."""
    sentences = [sentence.codes for sentence in held_out()]
    first %= len(sentences)
    whole = np.concatenate(sentences[first:] + sentences[:first])
    return np.tile(whole, -(-num_codes // len(whole)))[:num_codes]
