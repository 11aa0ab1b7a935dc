# SPDX-License-Identifier: Apache-2.0
"""The periodic activation of BigVGAN, applied at twice the rate between two low-pass filters."""

from .api import IMPLEMENTATIONS, Implementation, antialiased_snake, choose

__all__ = ["IMPLEMENTATIONS", "Implementation", "antialiased_snake", "choose"]
