# SPDX-License-Identifier: Apache-2.0
"""One legend of axes for the whole package.

======  =====================================================================================
axis    meaning
======  =====================================================================================
B       batch: requests, or items of a stack
N       speech codes of one request (50 per second for Qwen2.5-Omni)
T       mel frames of one request, ``T = repeats * N`` (100 per second)
F       mel frames of a packed batch: frames of all its blocks one after another, no padding
G       blocks in a packed batch
S       frames per block (24 for Qwen2.5-Omni); the last block of a request may hold fewer
M       mel bins (80)
C       channels: width of a hidden state
H, D    attention heads, width of one head
L       samples of a waveform, ``L = samples_per_frame * T``
======  =====================================================================================

Times of the flow are plain Python floats in [0, 1]. Durations carry their unit in the name
(``_s`` seconds, ``_ms`` milliseconds).
"""
