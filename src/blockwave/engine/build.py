# SPDX-License-Identifier: Apache-2.0
"""Modules with memory on a device, in the dtype that each part is computed in."""

from __future__ import annotations

import torch

from ..config import Token2WavConfig
from ..errors import OptionError
from ..ops import antialiased_snake
from ..velocity import DiT
from ..waveform import BigVGAN

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}


def check_dtype(dtype: torch.dtype | str) -> torch.dtype:
    """A torch dtype from itself or its name.

    Raises:
        OptionError: not one of float32, float64, bfloat16, float16.
    """
    for name, found in DTYPES.items():
        if dtype in (name, found):
            return found
    raise OptionError(f"dtype: got {dtype!r}, expected one of {', '.join(DTYPES)}")


def check_device(device: torch.device | str) -> torch.device:
    """A device that exists here.

    Raises:
        OptionError: an unknown name, or an accelerator that torch does not find.
    """
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError, ImportError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise OptionError(f"device: got {str(device)!r}, expected a device of this machine ({reason})") from None
    return found


def build(config: Token2WavConfig, device: torch.device, dtype: torch.dtype) -> tuple[DiT, BigVGAN]:
    """Both modules with uninitialised weights.

    float32 and float64 hold for everything. In half precision the layers' matrix products run in ``dtype``; the state
    between them, norms, modulations, conditions and the whole vocoder stay in float32.
    """
    with torch.device("meta"):
        dit, vocoder = DiT(config.dit), BigVGAN(config.vocoder)
    wide = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    dit.to(wide)
    vocoder.to(wide)
    antialiased_snake.choose(device, needs_grad=False, dtype=wide)  # what has to be compiled is compiled here
    for layer in dit.layers:
        for product in layer.products():
            product.to(dtype)
    return dit.to_empty(device=device).eval(), vocoder.to_empty(device=device).eval()
