# SPDX-License-Identifier: Apache-2.0
"""What streaming costs and what it gives: look-ahead, first audio, playback, throughput, late joiners."""
