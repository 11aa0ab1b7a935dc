# SPDX-License-Identifier: Apache-2.0
"""Doors to other software that runs the same models."""
