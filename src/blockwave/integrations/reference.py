# SPDX-License-Identifier: Apache-2.0
"""transformers' Token2Wav on the same checkpoint: what exactness is measured against."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..errors import MissingExtraError, OptionError
from ..voice import Voice

if TYPE_CHECKING:
    from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniToken2WavModel

# From 5.0 until the fix of July 2026 the rotary positions of this model were computed wrongly.
_FIRST_WRONG, _FIRST_RIGHT, _FIRST_KNOWN = (5, 0), (5, 24), (4, 57)


def check_version(version: str) -> None:
    """Raises OptionError for a transformers whose Token2Wav is wrong or unknown."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if _FIRST_WRONG <= numbers < _FIRST_RIGHT:
        raise OptionError(
            f"transformers: got {version}, expected 4.57 or >= 5.24; versions in between turn the wrong channels of "
            "the DiT's queries and keys and cannot serve as a reference"
        )
    if numbers < _FIRST_KNOWN:
        raise OptionError(f"transformers: got {version}, expected 4.57 or >= 5.24")


def load_reference(folder: Path) -> Qwen2_5OmniToken2WavModel:
    """The reference model of a checkpoint folder, float32 on the CPU, in eval mode.

    Raises:
        MissingExtraError: transformers is not installed.
        OptionError: a version that cannot serve as a reference.
    """
    try:
        import transformers
        from transformers.models.qwen2_5_omni import configuration_qwen2_5_omni as configuration
        from transformers.models.qwen2_5_omni import modeling_qwen2_5_omni as modeling
    except ImportError:
        raise MissingExtraError(
            'comparing with transformers needs it installed; pip install "blockwave[verify]"'
        ) from None
    check_version(transformers.__version__)
    with _quiet():
        config: Any = configuration.Qwen2_5OmniConfig.from_pretrained(folder).token2wav_config
        model = modeling.Qwen2_5OmniToken2WavModel.from_pretrained(
            folder, config=config, key_mapping={r"^token2wav\.": ""}, dtype=torch.float32
        )
    return model.eval()


@torch.no_grad()
def reference_mel(
    model: Qwen2_5OmniToken2WavModel, codes: Tensor, voice: Voice, noise: Tensor, **options: Any
) -> Tensor:
    """float32 [T, M] from codes int64 [N] and noise float32 [T, M].

    Args:
        options: num_steps, guidance_scale, sway_coefficient of the reference's ``sample``.
    """
    xvector, reference = (torch.tensor(array)[None] for array in (voice.xvector, voice.reference_mel))
    with _Noise(noise):
        mel = model.code2wav_dit_model.sample(xvector, reference, codes[None], **options)
    return mel[0].T.contiguous()


@torch.no_grad()
def reference_wave(model: Qwen2_5OmniToken2WavModel, mel: Tensor) -> Tensor:
    """float32 [L] from mel [T, M]."""
    return model.code2wav_bigvgan_model(mel.T[None])


class _Noise(TorchFunctionMode):
    """Answers ``torch.randn`` with a given tensor: the reference draws its noise from the global generator."""

    def __init__(self, noise: Tensor) -> None:
        super().__init__()
        self.noise = noise

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.randn:
            return self.noise.clone().reshape(args[0])
        return func(*args, **(kwargs or {}))


@contextmanager
def _quiet() -> Iterator[None]:
    """Other stages' tensors and token ids beyond this stage are no news."""
    from transformers.utils import logging as transformers_logging

    logger = logging.getLogger("transformers")
    level, bars = logger.level, transformers_logging.is_progress_bar_enabled()
    logger.setLevel(logging.ERROR)
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        logger.setLevel(level)
        if bars:
            transformers_logging.enable_progress_bar()
