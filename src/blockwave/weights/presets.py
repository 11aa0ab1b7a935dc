# SPDX-License-Identifier: Apache-2.0
"""Configurations of random checkpoints in the real layout: tiny for tests, small to demonstrate, full as released."""

from __future__ import annotations

import copy
from typing import Any, Literal

from ..errors import OptionError

Size = Literal["tiny", "small", "full"]

# config.json of Qwen/Qwen2.5-Omni-7B, reduced to what transformers' classes of today still know.
_DIT: dict[str, Any] = {
    "model_type": "qwen2_5_omni_dit",
    "hidden_size": 1024,
    "num_hidden_layers": 22,
    "num_attention_heads": 16,
    "head_dim": 64,
    "ff_mult": 2,
    "emb_dim": 512,
    "dropout": 0.1,
    "block_size": 24,
    "look_ahead_layers": [10],
    "look_backward_layers": [0, 20],
    "repeats": 2,
    "num_embeds": 8193,
    "mel_dim": 80,
    "enc_emb_dim": 192,
    "enc_dim": 128,
    "enc_channels": [256, 256, 256, 256, 768],
    "enc_kernel_sizes": [5, 3, 3, 3, 1],
    "enc_dilations": [1, 2, 3, 4, 1],
    "enc_attention_channels": 64,
    "enc_res2net_scale": 2,
    "enc_se_channels": 64,
    "max_position_embeddings": 32768,
    "rope_theta": 10000.0,
}
_VOCODER: dict[str, Any] = {
    "model_type": "qwen2_5_omni_bigvgan",
    "mel_dim": 80,
    "upsample_initial_channel": 1536,
    "resblock_kernel_sizes": [3, 7, 11],
    "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]],
    "upsample_rates": [5, 3, 2, 2, 2, 2],
    "upsample_kernel_sizes": [11, 7, 4, 4, 4, 4],
}

# tiny: no two axes of equal width, attention narrower than the hidden state, other stages and kernels than released.
_CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "full": ({}, {}),
    "small": (
        {
            "hidden_size": 256,
            "num_hidden_layers": 8,
            "num_attention_heads": 8,
            "head_dim": 32,
            "emb_dim": 128,
            "look_ahead_layers": [4],
            "look_backward_layers": [0, 6],
            "enc_dim": 64,
            "enc_channels": [64, 64, 64, 64, 192],
            "enc_attention_channels": 32,
            "enc_se_channels": 16,
        },
        {"upsample_initial_channel": 256},
    ),
    "tiny": (
        {
            "hidden_size": 72,
            "num_hidden_layers": 5,
            "num_attention_heads": 4,
            "head_dim": 16,
            "ff_mult": 3,
            "emb_dim": 40,
            "look_ahead_layers": [2],
            "look_backward_layers": [0, 4],
            "enc_dim": 28,
            "enc_channels": [36, 36, 36, 36, 108],
            "enc_attention_channels": 20,
            "enc_res2net_scale": 3,
            "enc_se_channels": 14,
        },
        {
            "upsample_initial_channel": 96,
            "resblock_kernel_sizes": [3, 7],
            "resblock_dilation_sizes": [[1, 3, 5], [1, 2, 4]],
            "upsample_rates": [5, 4, 4, 3],
            "upsample_kernel_sizes": [11, 8, 8, 5],
        },
    ),
}

_OLDER_KEYS = {"hidden_size": "dim", "num_hidden_layers": "depth", "num_attention_heads": "heads"}


def config_json(size: Size = "tiny", *, older_keys: bool = False) -> dict[str, Any]:
    """The content of ``config.json`` for a size, with the top-level structure of the released files.

    Args:
        older_keys: name the sizes of the DiT ``dim``, ``depth``, ``heads``, as the first released files did.

    Raises:
        OptionError: an unknown size.
    """
    if size not in _CHANGES:
        raise OptionError(f"size: got {size!r}, expected one of {', '.join(sorted(_CHANGES))}")
    dit, vocoder = (base | change for base, change in zip((_DIT, _VOCODER), _CHANGES[size], strict=True))
    if older_keys:
        dit = {_OLDER_KEYS.get(key, key): value for key, value in dit.items()}
    return copy.deepcopy(
        {
            "architectures": ["Qwen2_5OmniModel"],
            "model_type": "qwen2_5_omni",
            "enable_audio_output": True,
            "enable_talker": True,
            "thinker_config": {"model_type": "qwen2_5_omni_thinker"},
            "talker_config": {"model_type": "qwen2_5_omni_talker"},
            "token2wav_config": {
                "model_type": "qwen2_5_omni_token2wav",
                "dit_config": dit,
                "bigvgan_config": vocoder,
            },
        }
    )
