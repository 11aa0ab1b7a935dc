# SPDX-License-Identifier: Apache-2.0
"""Measurements side by side; one JSON per run under results/."""
