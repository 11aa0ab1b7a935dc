# SPDX-License-Identifier: Apache-2.0
"""The vocoder on many mels of unequal length, or on one of any length, in bounded memory and without padding.

A mel is cut into windows that keep disjoint ranges of frames and read true frames around them, as many as the
receptive field. An edge of a window is either the real end of the mel, where the vocoder continues the signal as it
always does, or lies so far out that nothing of what is kept depends on it. Only windows of equal length share a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import OptionError
from .bigvgan import BigVGAN
from .reach import Reach, receptive_field

WINDOW_FRAMES, MAX_BATCH_FRAMES = 480, 1024


@dataclass(frozen=True)
class Window:
    """Frames ``start .. stop`` are read, ``keep_start .. keep_stop`` become samples; ends are excluded."""

    start: int
    stop: int
    keep_start: int
    keep_stop: int


def plan_windows(num_frames: int, window_frames: int, reach: Reach) -> list[Window]:
    """Cuts a mel into windows of one length that keep about ``window_frames`` frames each, never more inside.

    A mel of at most window_frames + left + right frames stays whole. Plain integers.
    """
    surplus = num_frames - reach.left - reach.right
    if surplus <= window_frames:
        return [Window(0, num_frames, 0, num_frames)]
    count = -(-surplus // window_frames)
    own = -(-surplus // count)
    length = own + reach.left + reach.right
    windows, kept = [], 0
    for i in range(count):
        stop = min(i * own + length, num_frames)
        keep_stop = num_frames if stop == num_frames else stop - reach.right
        windows.append(Window(stop - length, stop, kept, keep_stop))
        kept = keep_stop
    return windows


def vocode(
    model: BigVGAN,
    mels: Sequence[Tensor],
    window_frames: int = WINDOW_FRAMES,
    max_batch_frames: int = MAX_BATCH_FRAMES,
) -> list[Tensor]:
    """Samples of each mel; an item's samples do not depend on the other items beyond rounding.

    Memory beside weights, mels and samples is that of one batch: at the released size in float32 on a CPU 0.25 to
    0.4 MB per frame, 0.4 GB with the defaults. A window computes the receptive field on both sides beside its own
    frames: 68 for 480 there.

    Args:
        model: the vocoder; its dtype and device are those of the computation.
        mels: items [T_i, M], T_i >= 1, as for :meth:`BigVGAN.forward`, on the model's device.
        window_frames: frames that a window adds to the receptive field. Longer windows repeat less work.
        max_batch_frames: frames, context included, that go through the model at once. One window always does.

    Returns:
        One tensor [L_i] per item, L_i = samples_per_frame * T_i, in the dtype of the weights. No gradients.

    Raises:
        OptionError: an item of another shape, or a limit below 1.
    """
    for name, value in (("window_frames", window_frames), ("max_batch_frames", max_batch_frames)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise OptionError(f"{name}: got {value!r}, expected an integer >= 1")
    for i, mel in enumerate(mels):
        if mel.ndim != 2 or mel.shape[0] == 0 or mel.shape[1] != model.config.mel_dim:
            raise OptionError(
                f"mels[{i}]: got shape {list(mel.shape)}, expected [T, {model.config.mel_dim}] with T >= 1"
            )
    out = [model.conv_pre.weight.new_empty(len(mel) * model.config.samples_per_frame) for mel in mels]
    for _ in vocode_into(out, model, mels, window_frames, max_batch_frames):
        pass
    return out


@torch.no_grad()
def vocode_into(
    out: Sequence[Tensor],
    model: BigVGAN,
    mels: Sequence[Tensor],
    window_frames: int = WINDOW_FRAMES,
    max_batch_frames: int = MAX_BATCH_FRAMES,
) -> Iterator[None]:
    """:func:`vocode` one batch at a time, for those who do something else in between.

    Args:
        out: tensors [L_i] to write to, complete when the iterator ends.
    """
    reach, rate = receptive_field(model.config), model.config.samples_per_frame
    by_length: defaultdict[int, list[tuple[int, Window]]] = defaultdict(list)
    for i, mel in enumerate(mels):
        for window in plan_windows(len(mel), window_frames, reach):
            by_length[window.stop - window.start].append((i, window))
    for length, entries in by_length.items():
        rows = max(1, max_batch_frames // length)
        for first in range(0, len(entries), rows):
            batch = entries[first : first + rows]
            samples = model(torch.stack([mels[i][window.start : window.stop] for i, window in batch]))
            for row, (i, window) in zip(samples, batch, strict=True):
                kept = row[(window.keep_start - window.start) * rate : (window.keep_stop - window.start) * rate]
                out[i][window.keep_start * rate : window.keep_stop * rate] = kept
            yield
