# SPDX-License-Identifier: Apache-2.0
"""Checkpoint -> modules: names, files, voices, the hub, and random checkpoints in the real layout."""
