# SPDX-License-Identifier: Apache-2.0
"""The vocoder: mel frames to samples."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..config import VocoderConfig
from ..errors import OptionError
from ..ops.antialiased_snake import Implementation
from .layers import Conv, Snake, Stage
from .normalise import normalise
from .passes import WHOLE, Pass

# Not in the configuration: both are fixed in the public architecture.
PRE_KERNEL_SIZE = 7
POST_KERNEL_SIZE = 7


class BigVGAN(nn.Module):
    """Lee et al., 2023, BigVGAN: a universal neural vocoder with large-scale training, arXiv 2206.04658.

    Args:
        config: number of stages, rates, kernels and dilations.
        implementation: which form of the activation runs, see :func:`blockwave.ops.antialiased_snake.choose`.
    """

    def __init__(self, config: VocoderConfig, implementation: Implementation | None = None) -> None:
        super().__init__()
        self.config = config
        self.conv_pre = Conv(config.mel_dim, config.initial_channels, PRE_KERNEL_SIZE, wide=True)
        shapes = enumerate(zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True))
        self.stages = nn.ModuleList(
            Stage(
                2 * config.channels(stage),
                rate,
                kernel_size,
                config.resblock_kernel_sizes,
                config.resblock_dilations,
                implementation,
            )
            for stage, (rate, kernel_size) in shapes
        )
        channels = config.channels(len(config.upsample_rates) - 1)
        self.post_act = Snake(channels, implementation)
        self.conv_post = Conv(channels, 1, POST_KERNEL_SIZE, bias=False)

    def forward(self, mel: Tensor) -> Tensor:
        """One pass over whole mels; both ends of the tensor are ends of the sound.

        Args:
            mel: [B, T, M], T >= 1, natural logarithm of a magnitude mel, floating point, on the model's device.

        Returns:
            [B, L] with L = samples_per_frame * T, in [-1, 1], in the dtype of the weights.

        Raises:
            OptionError: ``mel`` has another shape.
        """
        if mel.ndim != 3 or mel.shape[1] == 0 or mel.shape[2] != self.config.mel_dim:
            raise OptionError(
                f"mel: got shape {list(mel.shape)}, expected [B, T, {self.config.mel_dim}] with T >= 1; "
                "frames come before bins"
            )
        return self.run(mel, WHOLE)

    def run(self, mel: Tensor, run: Pass) -> Tensor:
        """The layers one after another, each as ``run`` runs it: mel [B, T, M] to the samples [B, L] that it gives."""
        x = run(self.conv_pre, normalise(mel).to(self.conv_pre.weight.dtype).transpose(1, 2))
        for stage in self.stages:
            x = stage(x, run)
        x = run(self.conv_post, run(self.post_act, x))
        return torch.clamp(x, -1.0, 1.0).flatten(1)
