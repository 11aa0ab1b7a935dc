# SPDX-License-Identifier: Apache-2.0
"""The velocity field of Qwen2.5-Omni's Token2Wav: a transformer over blocks of mel frames.

Computes what ``Qwen2_5OmniToken2WavDiTModel`` in transformers (>= 5.24) computes, on a packed batch of blocks of any
number of requests, without masks and without recomputing what does not change during a solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, silu

from ..config import DiTConfig
from .condition import Condition, PackedConditions, VoiceRows
from .guidance import MIN_GUIDANCE, guide
from .layers import DiTLayer
from .modulation import SINUSOID_DIM, TimeGrid, modulated_norm, sinusoid
from .speaker import SpeakerEncoder


class _ConstantWeights(NamedTuple):
    """Columns of the input projection that meet what is constant over a solve."""

    encoded: Tensor
    code: Tensor
    xvector: Tensor


class TimeEmbedding(nn.Module):
    """Linear, SiLU, Linear over the sinusoid of a time."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.up = nn.Linear(SINUSOID_DIM, hidden_size)
        self.down = nn.Linear(hidden_size, hidden_size)

    def forward(self, times: Sequence[float]) -> Tensor:
        """[R, C]."""
        return self.down(silu(self.up(sinusoid(times, self.up.weight.dtype, self.up.weight.device))))


class DiT(nn.Module):
    """v(x, t | codes, voice).

    Call :meth:`condition` once per request, :meth:`pack` once per batch, :meth:`time_grid` once per set of times, and
    :meth:`forward` at every evaluation.
    """

    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.time = TimeEmbedding(width)
        # Not drawn at random, as nn.Embedding would: its initialisation on the meta device imports torch's compiler.
        rows = torch.empty(config.num_embeds + 1, config.code_dim)
        self.code_embedding = nn.Embedding.from_pretrained(rows, freeze=False)
        self.speaker = SpeakerEncoder(config.speaker)
        constant_dim = config.speaker.output_dim + config.code_dim + config.xvector_dim
        self.input = nn.Linear(config.mel_dim + constant_dim, width)
        layers = [
            DiTLayer(
                width,
                config.num_heads,
                config.head_dim,
                config.ff_mult * width,
                config.num_heads if config.rope_heads == "all" else 1,
                *config.reach(index),
            )
            for index in range(config.num_layers)
        ]
        self.layers: Sequence[DiTLayer] = nn.ModuleList(layers)  # pyright: ignore[reportAttributeAccessIssue]
        self.final_modulation = nn.Linear(width, 2 * width)
        self.final = nn.Linear(width, config.mel_dim)

    def voice_rows(self, xvector: Tensor, reference_mel: Tensor) -> VoiceRows:
        """What a voice contributes, for all its requests.

        Args:
            xvector: [192] (``xvector_dim``).
            reference_mel: [T, M], at least ``config.speaker.min_frames`` frames.
        """
        encoded = self.speaker(reference_mel[None])
        silent = self.speaker(torch.zeros_like(reference_mel)[None])
        weight = self._constant_weights()
        null_code = linear(self.code_embedding.weight[:1], weight.code)
        shared = linear(encoded, weight.encoded, self.input.bias) + linear(xvector[None], weight.xvector)
        return VoiceRows(shared, linear(silent, weight.encoded, self.input.bias) + null_code)

    def condition(self, codes: Tensor, voice: VoiceRows, guidance: float) -> Condition:
        """The constants of one request.

        Args:
            codes: int64 [N], rows of the embedding.
            voice: from :meth:`voice_rows`.
            guidance: weight of classifier-free guidance; below 1e-5 there is no second branch.
        """
        code_rows = linear(self.code_embedding(codes), self._constant_weights().code) + voice.shared
        return Condition(code_rows, None if guidance < MIN_GUIDANCE else voice.null_row, guidance)

    def pack(self, conditions: Sequence[Condition]) -> PackedConditions:
        """The branches of several requests as one batch."""
        c = self.config
        return PackedConditions(
            conditions, block_size=c.block_size, repeats=c.repeats, head_dim=c.head_dim, theta=c.rope_theta
        )

    def time_grid(self, times: Sequence[float]) -> TimeGrid:
        """All modulations at the given times."""
        embedded = silu(self.time(times))
        layers = []
        for layer in self.layers:
            rows = layer.modulation(embedded).unflatten(-1, (6, self.config.hidden_size))
            rows[:, 1] += 1
            rows[:, 4] += 1
            layers.append(rows)
        final = self.final_modulation(embedded).unflatten(-1, (2, self.config.hidden_size))
        final[:, 0] += 1
        return TimeGrid(tuple(times), torch.stack(layers), final)

    def forward(self, x: Tensor, batch: PackedConditions, grid: TimeGrid, rows: int | Tensor) -> Tensor:
        """The guided velocity.

        Args:
            x: [F, M], frames of all requests one after another.
            batch: from :meth:`pack`.
            grid: from :meth:`time_grid`.
            rows: the grid's row for all frames, or int64 [F'] for every frame of the packed branches.

        Returns:
            [F, M].
        """
        out = self.branches(x, batch, grid, rows)
        velocity = out.index_select(0, batch.conditional)
        if not len(batch.guided):
            return velocity
        null = out.index_select(0, batch.unconditional)
        if batch.guided_index is None:
            return guide(velocity, null, batch.guidance)
        guided = guide(velocity.index_select(0, batch.guided_index), null, batch.guidance)
        return velocity.index_copy(0, batch.guided_index, guided)

    def branches(self, x: Tensor, batch: PackedConditions, grid: TimeGrid, rows: int | Tensor) -> Tensor:
        """The velocity of every branch before guidance, [F', M] in packed order."""
        h = linear(x, self.input.weight[:, : self.config.mel_dim])
        h = h.index_select(0, batch.x_of) + batch.constants.index_select(0, batch.constant_of)
        for index, layer in enumerate(self.layers):
            h = layer(h, grid.layer(index, rows), batch.layout, batch.cos, batch.sin)
        scale, shift = grid.scale_and_shift(rows)
        return self.final(modulated_norm(h, scale, shift))

    def _constant_weights(self) -> _ConstantWeights:
        c = self.config
        sizes = [c.mel_dim, c.speaker.output_dim, c.code_dim, c.xvector_dim]
        return _ConstantWeights(*self.input.weight.split(sizes, dim=1)[1:])
