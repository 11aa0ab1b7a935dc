# SPDX-License-Identifier: Apache-2.0
"""Keys that a file leaves out mean what they mean to transformers."""

from __future__ import annotations

from transformers.models.qwen2_5_omni import configuration_qwen2_5_omni as theirs

from blockwave.config import Token2WavConfig


def test_defaults_are_those_of_transformers():
    written = {
        "dit_config": theirs.Qwen2_5OmniDiTConfig().to_dict(),
        "bigvgan_config": theirs.Qwen2_5OmniBigVGANConfig().to_dict(),
    }
    assert Token2WavConfig.from_dict(written) == Token2WavConfig.from_dict({"dit_config": {}, "bigvgan_config": {}})
