# SPDX-License-Identifier: Apache-2.0
"""The table between the names of a checkpoint and the names of our parameters.

Everything accidental about the released names (list wrappers, ``to_out.0``, ``ff.ff.3``, separate q, k and v,
interleaved rotary pairs) is written down here once. The table is computed from the configuration alone and works in
both directions: :meth:`Slot.store` fills a parameter from a checkpoint tensor, :meth:`Slot.fetch` gives the checkpoint
tensor back.

Checkpoint names are written without the ``token2wav.`` prefix that whole models put before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..config import DiTConfig, SpeakerEncoderConfig, Token2WavConfig, VocoderConfig

Part = Literal["dit", "vocoder"]
Shape = tuple[int, ...]

WHOLE_MODEL_PREFIX = "token2wav."
DIT_PREFIX = "code2wav_dit_model."
VOCODER_PREFIX = "code2wav_bigvgan_model."
# Width of the sinusoid that embeds the time; not a setting in any release (DiTTimestepEmbedding of transformers).
TIME_FEATURES = 256

# Buffers that some files carry and that are computed here: rotary frequencies and anti-aliasing filters.
_DROPPED = re.compile(r"(.*\.)?(rotary_embed\.(original_)?inv_freq|(upsample|downsample)(\.lowpass)?\.filter)")


@dataclass(frozen=True)
class Slot:
    """Where one checkpoint tensor lives among our parameters.

    Attributes:
        name: checkpoint name without ``token2wav.``.
        shape: its shape in the checkpoint.
        part: which of the two modules holds it.
        target: name of the parameter in that module.
        first_row: first row that it takes in the parameter; None where it is the whole parameter.
        rotated_heads: leading heads whose rows are stored as rotary pairs (0, 1, 2, 3, ...) and kept in halves
            (0, 2, ..., 1, 3, ...).
        head_dim: rows per head; only meaningful with ``rotated_heads``.
    """

    name: str
    shape: Shape
    part: Part
    target: str
    first_row: int | None = None
    rotated_heads: int = 0
    head_dim: int = 0

    def store(self, parameter: Tensor, source: Tensor) -> None:
        """Copies the checkpoint tensor ``source`` into its rows of ``parameter``, converting the dtype."""
        if self.rotated_heads:
            source = source.index_select(0, self._order().to(source.device))
        self._region(parameter).copy_(source)

    def fetch(self, parameter: Tensor) -> Tensor:
        """The checkpoint tensor that ``parameter`` holds; a view where no rows are permuted."""
        region = self._region(parameter)
        if not self.rotated_heads:
            return region
        return region.index_select(0, torch.argsort(self._order()).to(region.device))

    def _region(self, parameter: Tensor) -> Tensor:
        return parameter if self.first_row is None else parameter.narrow(0, self.first_row, self.shape[0])

    def _order(self) -> Tensor:
        rows = torch.arange(self.shape[0])
        turned = self.rotated_heads * self.head_dim
        pairs = rows[:turned].view(self.rotated_heads, self.head_dim // 2, 2)
        return torch.cat([pairs.transpose(1, 2).reshape(-1), rows[turned:]])


def keymap(config: Token2WavConfig) -> tuple[Slot, ...]:
    """One slot per checkpoint tensor, in the order of the network."""
    return *_dit(config.dit), *_vocoder(config.vocoder)


def shapes(config: Token2WavConfig) -> dict[str, Shape]:
    """Expected shape of every checkpoint tensor."""
    return {slot.name: slot.shape for slot in keymap(config)}


def stage_name(name: str) -> str | None:
    """The name without ``token2wav.`` if the tensor belongs to this stage, else None (thinker, talker, ...)."""
    if name.startswith(WHOLE_MODEL_PREFIX):
        return name.removeprefix(WHOLE_MODEL_PREFIX)
    return name if name.startswith((DIT_PREFIX, VOCODER_PREFIX)) else None


def is_dropped(name: str) -> bool:
    """Whether a tensor of this stage is a buffer that is computed instead of read."""
    return _DROPPED.fullmatch(name) is not None


def _layer(part: Part, name: str, target: str, weight: Shape, bias: bool = True) -> Iterator[Slot]:
    yield Slot(f"{name}.weight", weight, part, f"{target}.weight")
    if bias:
        yield Slot(f"{name}.bias", (weight[0],), part, f"{target}.bias")


def _dit(c: DiTConfig) -> Iterator[Slot]:
    def linear(name: str, target: str, rows: int, columns: int) -> Iterator[Slot]:
        return _layer("dit", DIT_PREFIX + name, target, (rows, columns))

    hidden, inner, width = c.hidden_size, c.num_heads * c.head_dim, c.ff_mult * c.hidden_size
    yield from linear("time_embed.time_mlp.0", "time.up", hidden, TIME_FEATURES)
    yield from linear("time_embed.time_mlp.2", "time.down", hidden, hidden)
    embedding = "text_embed.codec_embed.weight"
    yield Slot(DIT_PREFIX + embedding, (c.num_embeds + 1, c.code_dim), "dit", "code_embedding.weight")
    columns = c.mel_dim + c.speaker.output_dim + c.code_dim + c.xvector_dim
    yield from linear("input_embed.proj", "input", hidden, columns)
    yield from _speaker(c.speaker)
    for i in range(c.num_layers):
        there, here = f"transformer_blocks.{i}", f"layers.{i}"
        yield from linear(f"{there}.attn_norm.linear", f"{here}.modulation", 6 * hidden, hidden)
        for part, letter in enumerate("qkv"):
            turned = 0 if letter == "v" else {"first": 1, "all": c.num_heads}[c.rope_heads]
            for kind, shape in (("weight", (inner, hidden)), ("bias", (inner,))):
                name = f"{DIT_PREFIX}{there}.attn.to_{letter}.{kind}"
                yield Slot(name, shape, "dit", f"{here}.qkv.{kind}", part * inner, turned, c.head_dim)
        yield from linear(f"{there}.attn.to_out.0", f"{here}.out", hidden, inner)
        yield from linear(f"{there}.ff.ff.0", f"{here}.up", width, hidden)
        yield from linear(f"{there}.ff.ff.3", f"{here}.down", hidden, width)
    yield from linear("norm_out.linear", "final_modulation", 2 * hidden, hidden)
    yield from linear("proj_out", "final", c.mel_dim, hidden)


def _speaker(c: SpeakerEncoderConfig) -> Iterator[Slot]:
    def conv(name: str, target: str, out: int, into: int, kernel: int = 1) -> Iterator[Slot]:
        return _layer("dit", f"{DIT_PREFIX}input_embed.spk_encoder.{name}", f"speaker.{target}", (out, into, kernel))

    yield from conv("blocks.0.conv", "stem", c.channels[0], c.mel_dim, c.kernel_sizes[0])
    for i, channels in enumerate(c.channels[1:-1], start=1):
        there, here, group = f"blocks.{i}", f"blocks.{i - 1}", channels // c.res2net_scale
        yield from conv(f"{there}.tdnn1.conv", f"{here}.pre", channels, c.channels[i - 1])
        for j in range(c.res2net_scale - 1):
            yield from conv(
                f"{there}.res2net_block.blocks.{j}.conv", f"{here}.res.{j}", group, group, c.kernel_sizes[i]
            )
        yield from conv(f"{there}.tdnn2.conv", f"{here}.post", channels, channels)
        yield from conv(f"{there}.se_block.conv1", f"{here}.squeeze", c.se_channels, channels)
        yield from conv(f"{there}.se_block.conv2", f"{here}.excite", channels, c.se_channels)
    last = c.channels[-1]
    yield from conv("mfa.conv", "aggregate", last, last, c.kernel_sizes[-1])
    yield from conv("asp.tdnn.conv", "attention_in", c.attention_channels, 3 * last)
    yield from conv("asp.conv", "attention_out", last, c.attention_channels)
    yield from conv("fc", "project", c.output_dim, 2 * last)


def _vocoder(c: VocoderConfig) -> Iterator[Slot]:
    def conv(name: str, target: str, weight: Shape, bias: bool = True) -> Iterator[Slot]:
        return _layer("vocoder", VOCODER_PREFIX + name, target, weight, bias)

    def snake(name: str, target: str, channels: int) -> Iterator[Slot]:
        for kind in ("alpha", "beta"):
            yield Slot(f"{VOCODER_PREFIX}{name}.act.{kind}", (channels,), "vocoder", f"{target}.log_{kind}")

    yield from conv("conv_pre", "conv_pre", (c.initial_channels, c.mel_dim, 7))
    channels, kernels = c.initial_channels, c.resblock_kernel_sizes
    for s, up_kernel in enumerate(c.upsample_kernel_sizes):
        before, channels = channels, c.channels(s)
        weight = f"ups.{s}.0.weight", (before, channels, up_kernel)  # transposed: [in, out, kernel]
        yield Slot(VOCODER_PREFIX + weight[0], weight[1], "vocoder", f"stages.{s}.up.weight")
        yield Slot(f"{VOCODER_PREFIX}ups.{s}.0.bias", (channels,), "vocoder", f"stages.{s}.up.bias")
        for k, kernel in enumerate(kernels):
            there, here = f"resblocks.{s * len(kernels) + k}", f"stages.{s}.blocks.{k}"
            pairs = len(c.resblock_dilations[k])
            for convs in ("convs1", "convs2"):
                for j in range(pairs):
                    yield from conv(f"{there}.{convs}.{j}", f"{here}.{convs}.{j}", (channels, channels, kernel))
            for j in range(2 * pairs):
                yield from snake(f"{there}.activations.{j}", f"{here}.acts.{j}", channels)
    yield from snake("activation_post", "post_act", channels)
    yield from conv("conv_post", "conv_post", (1, channels, 7), bias=False)
