# SPDX-License-Identifier: Apache-2.0
"""Error budgets and seeded models: what tests of kernels and of this package measure with."""

from __future__ import annotations

import torch
from torch import Tensor

from .config import DiTConfig, Token2WavConfig
from .velocity import Condition, DiT
from .weights.keymap import keymap
from .weights.presets import Size, config_json
from .weights.random_values import random_tensor

#: Largest difference from transformers, and between two ways of computing the same sound, relative to the maximum.
EXACT = 1e-5


def relative_error(got: Tensor, expected: Tensor) -> float:
    """max |got - expected| / max |expected|; infinity if ``got`` holds NaN. Shapes must be equal."""
    if got.shape != expected.shape:
        raise ValueError(f"got shape {list(got.shape)}, expected {list(expected.shape)}")
    error = (got.double() - expected.double()).abs().max() / expected.double().abs().max()
    return float(error.nan_to_num(nan=torch.inf))


def excess_error(got: Tensor, plain: Tensor, exact: Tensor, floor_ulps: float = 2.0) -> float:
    """The error of ``got`` in units of what plain PyTorch loses; a kernel is sound up to 2.

    Args:
        got: the result under test.
        plain: the same computed by PyTorch's own operators in the dtype of ``got``.
        exact: the same in float64.
        floor_ulps: error that is always granted, in units of the last place of the maximum; on a handful of frames
            PyTorch may lose nothing by luck, where rounding once more is no fault.
    """
    loss = (plain.double() - exact).abs().max()
    floor = floor_ulps * torch.finfo(got.dtype).eps * exact.abs().max()
    error = (got.double() - exact).abs().max() / torch.maximum(loss, floor)
    return float(error.nan_to_num(nan=torch.inf))


def sized_config(size: Size = "tiny", **dit: object) -> Token2WavConfig:
    """The configuration of a random checkpoint; ``dit`` replaces settings of its transformer."""
    settings = config_json(size)
    settings["token2wav_config"]["dit_config"] |= dit
    return Token2WavConfig.from_dict(settings)


@torch.no_grad()
def random_dit(config: Token2WavConfig, seed: int = 0) -> DiT:
    """A transformer with the weights that ``make_checkpoint`` would write; float32 on the CPU."""
    dit = DiT(config.dit).eval().requires_grad_(False)
    parameters = dict(dit.named_parameters())
    for slot in keymap(config):
        if slot.part == "dit":
            slot.store(parameters[slot.target], random_tensor(slot.name, slot.shape, config, seed))
    return dit


def random_request(config: DiTConfig, num_codes: int, reference_frames: int, seed: int = 0) -> dict[str, Tensor]:
    """Codes [N], ``xvector`` [D], ``reference_mel`` [T, M] and noise ``x`` [F, M] of one request."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    return {
        "codes": torch.randint(1, config.num_embeds + 1, (num_codes,), generator=generator),
        "xvector": normal(config.xvector_dim),
        "reference_mel": 1.5 * normal(reference_frames, config.mel_dim) - 5,
        "x": normal(config.repeats * num_codes, config.mel_dim),
    }


def request_condition(dit: DiT, request: dict[str, Tensor], guidance: float) -> Condition:
    """The condition of a :func:`random_request`."""
    voice = dit.voice_rows(request["xvector"], request["reference_mel"])
    return dit.condition(request["codes"], voice, guidance)
