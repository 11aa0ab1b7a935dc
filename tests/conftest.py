# SPDX-License-Identifier: Apache-2.0
"""What holds for every test."""

from __future__ import annotations

import os

import hypothesis
import torch

# No test reaches for the network; set before anything imports huggingface_hub.
os.environ["HF_HUB_OFFLINE"] = "1"

# One thread: sums are taken in the same order on every machine, and tests that run side by side do not fight for cores.
torch.set_num_threads(1)

# Examples of different length take different time, and the first of all pays for warming up.
hypothesis.settings.register_profile("blockwave", deadline=None, print_blob=True)
hypothesis.settings.load_profile("blockwave")
