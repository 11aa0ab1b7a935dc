# SPDX-License-Identifier: Apache-2.0
"""The flow from noise to mel: time points, solver, noise. Knows nothing of speech."""
