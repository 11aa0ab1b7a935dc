# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint's ``config.json`` says about Token2Wav: frozen, checked once, read nowhere below the top.

Both generations of names are understood: transformers writes ``hidden_size``, ``num_hidden_layers``,
``num_attention_heads`` and ``rope_parameters``; the first released files have ``dim``, ``depth``, ``heads`` and
``rope_theta``. No number of a released model is built in: keys that the files leave out take the defaults of
transformers' configuration class, which is what transformers itself does with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .codes import QWEN2_5_OMNI, CodeClock, Family
from .errors import ConfigError

RopeHeads = Literal["first", "all"]


@dataclass(frozen=True)
class SpeakerEncoderConfig:
    """ECAPA-TDNN (Desplanques et al., 2020, arXiv 2005.07143) over the reference mel."""

    mel_dim: int
    channels: tuple[int, ...]
    kernel_sizes: tuple[int, ...]
    dilations: tuple[int, ...]
    attention_channels: int
    res2net_scale: int
    se_channels: int
    output_dim: int

    @property
    def min_frames(self) -> int:
        """Shortest reference mel that reflect padding allows: every pad must be shorter than the signal."""
        convs = zip(self.kernel_sizes, self.dilations, strict=True)
        return 1 + max(math.ceil(dilation * (kernel - 1) / 2) for kernel, dilation in convs)


@dataclass(frozen=True)
class DiTConfig:
    """The flow-matching transformer. Layers not listed in ``look_*_layers`` see their own block only."""

    hidden_size: int
    num_layers: int
    num_heads: int
    head_dim: int
    ff_mult: int
    code_dim: int
    num_embeds: int
    repeats: int
    block_size: int
    look_ahead_layers: tuple[int, ...]
    look_backward_layers: tuple[int, ...]
    mel_dim: int
    xvector_dim: int
    max_position_embeddings: int
    rope_theta: float
    rope_heads: RopeHeads
    speaker: SpeakerEncoderConfig

    def reach(self, layer: int) -> tuple[int, int]:
        """(blocks behind, blocks ahead) that attention of ``layer`` sees beside its own block."""
        return int(layer in self.look_backward_layers), int(layer in self.look_ahead_layers)


@dataclass(frozen=True)
class VocoderConfig:
    """BigVGAN (Lee et al., 2023, arXiv 2206.04658): number of stages, kernels, dilations and rates are free."""

    mel_dim: int
    initial_channels: int
    resblock_kernel_sizes: tuple[int, ...]
    resblock_dilations: tuple[tuple[int, ...], ...]
    upsample_rates: tuple[int, ...]
    upsample_kernel_sizes: tuple[int, ...]

    @property
    def samples_per_frame(self) -> int:
        return math.prod(self.upsample_rates)

    def channels(self, stage: int) -> int:
        """Channels after upsampling stage ``stage`` (0-based); they halve at every stage."""
        return self.initial_channels // 2 ** (stage + 1)


@dataclass(frozen=True)
class Token2WavConfig:
    """Both models, the family of the codes and the rate of the sound.

    Attributes:
        codebook: hash of the codebook that codes index; None where the checkpoint does not say.
        random: the weights were drawn at random and make noise, as ``make_checkpoint`` writes them.
    """

    dit: DiTConfig
    vocoder: VocoderConfig
    family: Family
    sample_rate: int = 24_000
    default_voice: str | None = None
    codebook: str | None = None
    random: bool = False

    @property
    def clock(self) -> CodeClock:
        return CodeClock(self.dit.repeats, self.vocoder.samples_per_frame, self.dit.block_size, self.sample_rate)

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> Token2WavConfig:
        """Reads the parsed ``config.json`` of a whole model or its ``token2wav_config`` alone.

        Raises:
            ConfigError: a missing section, a value of the wrong kind, or values that contradict each other.
        """
        section = config.get("token2wav_config", config)
        if not isinstance(section, Mapping) or not {"dit_config", "bigvgan_config"} <= section.keys():
            raise ConfigError(
                "config.json: got no token2wav_config with dit_config and bigvgan_config; "
                "expected the configuration of a model with a Token2Wav stage, e.g. Qwen/Qwen2.5-Omni-7B"
            )
        own = _Reader(config.get("blockwave", {}), "blockwave")
        family = _family(own.get("family", default=None))
        default_voice = own.get("default_voice", default="Chelsie" if family is QWEN2_5_OMNI else None)
        if default_voice is not None and not isinstance(default_voice, str):
            raise own.fail("default_voice", default_voice, "the name of a voice")
        codebook = own.get("codebook", default=None)
        if codebook is not None and not isinstance(codebook, str):
            raise own.fail("codebook", codebook, "the hash of a codebook")
        built = cls(
            dit=_read_dit(_Reader(section["dit_config"], "dit_config")),
            vocoder=_read_vocoder(_Reader(section["bigvgan_config"], "bigvgan_config")),
            family=family,
            default_voice=default_voice,
            codebook=codebook,
            random=own.get("random", default=False) is True,
        )
        if built.dit.mel_dim != built.vocoder.mel_dim:
            raise ConfigError(
                f"mel_dim: got {built.dit.mel_dim} in dit_config and {built.vocoder.mel_dim} in bigvgan_config, "
                "expected the same number; the vocoder reads what the DiT writes"
            )
        return built


def _family(name: object) -> Family:
    if name is None or name == QWEN2_5_OMNI.name:
        return QWEN2_5_OMNI
    if not isinstance(name, str) or not name:
        raise ConfigError(f"blockwave.family: got {name!r}, expected the name of a family of codes")
    return Family(name)


# Beyond these a size is a mistake, refused before anything is allocated.
_MOST, _MOST_LAYERS = 2**20, 1000


class _Reader:
    """Takes typed values out of one section and names the section in every complaint."""

    def __init__(self, section: object, name: str) -> None:
        if not isinstance(section, Mapping):
            raise ConfigError(f"{name}: got {type(section).__name__}, expected an object of settings")
        self.section, self.name = section, name

    def get(self, *keys: str, default: object) -> Any:
        """The value under the first of several names; two names with different values are an error."""
        found = {key: self.section[key] for key in keys if self.section.get(key) is not None}
        if len({repr(value) for value in found.values()}) > 1:
            raise ConfigError(f"{self.name}: got {found}, expected one value; these are names of the same setting")
        return next(iter(found.values()), default)

    def integer(self, *keys: str, default: object, minimum: int = 1, maximum: int = _MOST) -> int:
        value = self.get(*keys, default=default)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ConfigError(f"{self.name}.{keys[0]}: got {value!r}, expected an integer >= {minimum}")
        if value > maximum:
            raise ConfigError(f"{self.name}.{keys[0]}: got {value}, expected at most {maximum}")
        return value

    def integers(self, key: str, default: object, minimum: int = 1) -> tuple[int, ...]:
        value = self.get(key, default=default)
        if not isinstance(value, list | tuple) or not all(type(v) is int and v >= minimum for v in value):
            raise ConfigError(f"{self.name}.{key}: got {value!r}, expected a list of integers >= {minimum}")
        return tuple(value)

    def fail(self, key: str, got: object, expected: str) -> ConfigError:
        return ConfigError(f"{self.name}.{key}: got {got!r}, expected {expected}")


def _read_dit(r: _Reader) -> DiTConfig:
    # Defaults: Qwen2_5OmniDiTConfig of transformers 5.24.
    num_layers = r.integer("num_hidden_layers", "depth", default=22, maximum=_MOST_LAYERS)
    head_dim = r.integer("head_dim", default=64)
    if head_dim % 2:
        raise r.fail("head_dim", head_dim, "an even number; rotary positions turn pairs")
    layers = {}
    for key, default in (("look_ahead_layers", (10,)), ("look_backward_layers", (0, 20))):
        layers[key] = r.integers(key, default, minimum=0)
        if any(layer >= num_layers for layer in layers[key]):
            raise r.fail(key, layers[key], f"layers below num_hidden_layers = {num_layers}")
    return DiTConfig(
        hidden_size=r.integer("hidden_size", "dim", default=1024),
        num_layers=num_layers,
        num_heads=r.integer("num_attention_heads", "heads", default=16),
        head_dim=head_dim,
        ff_mult=r.integer("ff_mult", default=2),
        code_dim=r.integer("emb_dim", default=512),
        num_embeds=r.integer("num_embeds", default=8193),
        repeats=r.integer("repeats", default=2),
        block_size=r.integer("block_size", default=24),
        mel_dim=r.integer("mel_dim", default=80),
        xvector_dim=r.integer("enc_emb_dim", default=192),
        max_position_embeddings=r.integer("max_position_embeddings", default=32768, maximum=2**31),
        rope_theta=_rope_theta(r),
        rope_heads=_rope_heads(r),
        speaker=_read_speaker(r),
        **layers,
    )


def _rope_theta(r: _Reader) -> float:
    parameters = r.get("rope_parameters", "rope_scaling", default={})
    if not isinstance(parameters, Mapping):
        raise r.fail("rope_parameters", parameters, "an object with rope_theta")
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind != "default":
        raise r.fail("rope_parameters.rope_type", kind, "'default'; scaled rotary positions are not part of Token2Wav")
    theta = parameters.get("rope_theta", r.get("rope_theta", default=10_000.0))
    if isinstance(theta, bool) or not isinstance(theta, int | float) or not 0 < theta < math.inf:
        raise r.fail("rope_theta", theta, "a positive number")
    return float(theta)


def _rope_heads(r: _Reader) -> RopeHeads:
    # Not a key of the released files: their attention turns head 0 only. Other families say so here.
    value = r.get("rope_heads", default="first")
    if value not in ("first", "all"):
        raise r.fail("rope_heads", value, "'first' or 'all'")
    return value


def _read_speaker(r: _Reader) -> SpeakerEncoderConfig:
    channels = r.integers("enc_channels", (256, 256, 256, 256, 768))
    kernels = r.integers("enc_kernel_sizes", (5, 3, 3, 3, 1))
    dilations = r.integers("enc_dilations", (1, 2, 3, 4, 1))
    scale = r.integer("enc_res2net_scale", default=2)
    if not len(channels) == len(kernels) == len(dilations) >= 3:
        raise r.fail("enc_channels", channels, f"as many entries as kernels {kernels} and dilations {dilations}, >= 3")
    if sum(channels[1:-1]) != channels[-1]:
        raise r.fail("enc_channels", channels, "a last entry that is the sum of the middle ones; they are concatenated")
    if any(width % scale for width in channels[1:-1]):
        raise r.fail("enc_res2net_scale", scale, f"a divisor of enc_channels {channels[1:-1]}")
    if len(set(channels[:-1])) != 1:
        raise r.fail("enc_channels", channels, "equal entries up to the last; the blocks are residual")
    return SpeakerEncoderConfig(
        mel_dim=r.integer("mel_dim", default=80),
        channels=channels,
        kernel_sizes=kernels,
        dilations=dilations,
        attention_channels=r.integer("enc_attention_channels", default=64),
        res2net_scale=scale,
        se_channels=r.integer("enc_se_channels", default=64),
        output_dim=r.integer("enc_dim", default=128),
    )


def _read_vocoder(r: _Reader) -> VocoderConfig:
    # Defaults: Qwen2_5OmniBigVGANConfig of transformers 5.24.
    rates = r.integers("upsample_rates", (5, 3, 2, 2, 2, 2))
    kernels = r.integers("upsample_kernel_sizes", (11, 7, 4, 4, 4, 4))
    amp_kernels = r.integers("resblock_kernel_sizes", (3, 7, 11))
    dilations = r.get("resblock_dilation_sizes", default=((1, 3, 5),) * 3)
    channels = r.integer("upsample_initial_channel", default=1536)
    if len(rates) != len(kernels) or not rates:
        raise r.fail("upsample_kernel_sizes", kernels, f"one kernel for each of upsample_rates {rates}")
    if any(kernel < rate or (kernel - rate) % 2 for kernel, rate in zip(kernels, rates, strict=True)):
        raise r.fail("upsample_kernel_sizes", kernels, f"kernel >= rate and kernel - rate even for rates {rates}")
    if not isinstance(dilations, list | tuple) or len(dilations) != len(amp_kernels) or not amp_kernels:
        raise r.fail("resblock_dilation_sizes", dilations, f"one list for each of resblock_kernel_sizes {amp_kernels}")
    for row in dilations:
        if not isinstance(row, list | tuple) or len(row) != 3 or not all(type(d) is int and d >= 1 for d in row):
            raise r.fail("resblock_dilation_sizes", row, "three integers >= 1")
    if any(kernel % 2 == 0 for kernel in amp_kernels):
        raise r.fail("resblock_kernel_sizes", amp_kernels, "odd kernels; their padding is symmetric")
    if channels % 2 ** len(rates):
        raise r.fail("upsample_initial_channel", channels, f"a multiple of 2^{len(rates)}; they halve at every stage")
    return VocoderConfig(
        mel_dim=r.integer("mel_dim", default=80),
        initial_channels=channels,
        resblock_kernel_sizes=amp_kernels,
        resblock_dilations=tuple(tuple(row) for row in dilations),
        upsample_rates=rates,
        upsample_kernel_sizes=kernels,
    )
