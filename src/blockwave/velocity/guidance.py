# SPDX-License-Identifier: Apache-2.0
"""Classifier-free guidance (Ho and Salimans, 2022, arXiv 2207.12598) on a packed batch of branches."""

from __future__ import annotations

from torch import Tensor

MIN_GUIDANCE = 1e-5  # below it there is no second branch: Qwen2_5OmniToken2WavDiTModel.sample in transformers


def guide(conditional: Tensor, unconditional: Tensor, guidance: float | Tensor) -> Tensor:
    """c + (c - u) * guidance; all [F, M], guidance a number or [F, 1]."""
    return conditional + (conditional - unconditional) * guidance
