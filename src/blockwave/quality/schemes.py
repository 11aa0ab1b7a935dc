# SPDX-License-Identifier: Apache-2.0
"""One sentence rendered by one setting: at once, as a live stream, or window by window.

The window is the scheme of the public engines: 72 frames of its own, 48 before and 24 after, every window solved and
vocoded anew as a sequence of its own. Written anew here from that description.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from ..engine import Token2Wav
from ..engine.token2wav import VoiceLike
from ..errors import OptionError
from ..mel.noise import seeded_noise
from .settings import Setting

OWN_BLOCKS, PAST_BLOCKS, FUTURE_BLOCKS = 3, 2, 1


@dataclass(frozen=True, eq=False)
class Rendered:
    """What a setting made of one sentence.

    Attributes:
        samples: float32 [L].
        mel: float32 [T, M] of the flow.
        joins: frames at which pieces begin; of a rendering at once, its blocks.
        evaluated_blocks: blocks solved, those that were solved again counted again.
        seconds: wall time.
    """

    samples: np.ndarray
    mel: np.ndarray
    joins: tuple[int, ...]
    evaluated_blocks: float
    seconds: float


def render(model: Token2Wav, codes: np.ndarray, voice: VoiceLike, seed: int, setting: Setting) -> Rendered:
    """Codes [N] without special ids by a setting, with the model that was loaded for its dtype.

    Raises:
        CodesError, OptionError: before anything is computed.
    """
    scheme = windowed if setting.windowed else at_once if setting.look_ahead is None else streamed
    started_s = _now_s(model)
    samples, mel, joins, evaluated_blocks = scheme(model, codes, voice, seed, setting)
    return Rendered(samples, mel, joins, evaluated_blocks, _now_s(model) - started_s)


Parts = tuple[np.ndarray, np.ndarray, tuple[int, ...], float]


def at_once(model: Token2Wav, codes: np.ndarray, voice: VoiceLike, seed: int, setting: Setting) -> Parts:
    """The offline rendering."""
    speech = model(codes, voice, seed, **setting.options)
    joins = tuple(range(model.config.dit.block_size, len(speech.mel), model.config.dit.block_size))
    return speech.samples, speech.mel, joins, model.config.clock.num_blocks(len(codes))


def streamed(model: Token2Wav, codes: np.ndarray, voice: VoiceLike, seed: int, setting: Setting) -> Parts:
    """A live stream that gets all codes at once and emits three blocks at a time."""
    emitted = OWN_BLOCKS * _codes_per_block(model)
    assert setting.look_ahead is not None
    stream = model.stream(
        voice,
        seed,
        look_ahead=setting.look_ahead,
        first_chunk_codes=emitted,
        chunk_codes=emitted,
        **setting.options,
    )
    chunks = [*stream.feed(codes), *stream.finish()]
    mels = [chunk.mel for chunk in chunks if len(chunk.mel)]
    joins = tuple(int(frame) for frame in np.cumsum([len(mel) for mel in mels])[:-1])
    samples = np.concatenate([chunk.samples for chunk in chunks])
    return samples, np.concatenate(mels), joins, stream.evaluated_blocks / stream.evaluations


def windowed(model: Token2Wav, codes: np.ndarray, voice: VoiceLike, seed: int, setting: Setting) -> Parts:
    """Every window a sequence of its own, from the same noise; what lies outside its own frames is thrown away."""
    clock, per_block = model.config.clock, _codes_per_block(model)
    noise = seeded_noise(seed, clock.num_frames(len(codes)), model.config.dit.mel_dim)
    samples, mels, joins, evaluated_blocks = [], [], [], 0
    for start in range(0, len(codes), OWN_BLOCKS * per_block):
        stop = min(start + OWN_BLOCKS * per_block, len(codes))
        first, last = max(start - PAST_BLOCKS * per_block, 0), min(stop + FUTURE_BLOCKS * per_block, len(codes))
        its_noise = noise[clock.num_frames(first) : clock.num_frames(last)]
        speech = model(codes[first:last], voice, noise=its_noise, **setting.options)
        for kept, whole, count in ((samples, speech.samples, clock.num_samples), (mels, speech.mel, clock.num_frames)):
            kept.append(whole[count(start - first) : count(stop - first)])
        joins.append(clock.num_frames(start))
        evaluated_blocks += clock.num_blocks(last - first)
    return np.concatenate(samples), np.concatenate(mels), tuple(joins[1:]), evaluated_blocks


def _codes_per_block(model: Token2Wav) -> int:
    clock = model.config.clock
    if clock.block_frames % clock.frames_per_code:
        raise OptionError(
            f"setting: got blocks of {clock.block_frames} frames and codes of {clock.frames_per_code}, expected whole "
            "codes in a block; such a checkpoint cannot be parted at its blocks, render it at once"
        )
    return clock.block_frames // clock.frames_per_code


def _now_s(model: Token2Wav) -> float:
    if model.engine.device.type == "cuda":
        torch.cuda.synchronize(model.engine.device)
    return time.perf_counter()
