# SPDX-License-Identifier: Apache-2.0
"""The vocoder on a mel that comes in pieces: the samples of one pass, as soon as they are determined."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import OptionError
from .bigvgan import BigVGAN
from .pieces import PiecePass
from .reach import receptive_field


@dataclass(frozen=True, eq=False)
class StreamState:
    """What one stream of a vocoder holds between two pieces. Pushing makes a new one and leaves this one as it is.

    Attributes:
        frames: mel frames that have come.
        finished: the last piece was final.
        held: [V] values that the layers still need, one after another, in the dtype and on the device of the weights;
            None before the first frame and after the end.
        shapes: channels and samples of each of them.
    """

    frames: int = 0
    finished: bool = False
    held: Tensor | None = None
    shapes: tuple[tuple[int, int], ...] = ()

    @property
    def nbytes(self) -> int:
        return 0 if self.held is None else self.held.nbytes


class StreamingVocoder:
    """Runs the layers of a vocoder on pieces of a mel; holds no weights and no stream itself.

    The samples of all pieces one after another are those of one pass over the whole mel, up to the rounding of sums
    in another order. Samples wait for the frames that they depend on: at released size the last 34 frames are held back
    until more come or the end does. Each layer keeps its own context (arXiv 2206.04658 has the layers), so a piece
    costs what its frames cost in one pass, and 10 samples per activation.

    Args:
        model: its weights, dtype, device and choice of activation are used, whatever they are at the time of a piece.
    """

    def __init__(self, model: BigVGAN) -> None:
        self.model = model

    def start(self) -> StreamState:
        """A stream of which nothing has come."""
        return StreamState()

    def push(self, state: StreamState, mel: Tensor, final: bool = False) -> tuple[Tensor, StreamState]:
        """Every sample that is determined by what has come and was not given before.

        Args:
            state: of this stream, from :meth:`start` or the piece before, of a vocoder with the same configuration.
            mel: [T, M], T >= 0: the next frames, as for :meth:`BigVGAN.forward`. Its memory is not kept.
            final: the mel ends here; everything that is left is given.

        Returns:
            Samples [L], L >= 0, in the dtype of the weights, and the state for the next piece. Over a whole stream
            there are samples_per_frame samples for each frame. No gradients.

        Raises:
            OptionError: a mel of another shape, a stream that was finished, an end before the first frame.
        """
        (result,) = self.push_many([(state, mel, final)])
        return result

    @torch.no_grad()
    def push_many(self, pieces: Sequence[tuple[StreamState, Tensor, bool]]) -> list[tuple[Tensor, StreamState]]:
        """:meth:`push` for many streams: those that hold equal shapes and get equally long pieces share a batch.

        A stream past its first 2 x 34 frames (released size) always holds the same shapes, so then only the length
        of the pieces counts, and whether they are final. Memory grows with the streams that share a batch and with
        the length of the pieces.

        Args:
            pieces: (state, mel, final) of each stream, as for :meth:`push`.

        Returns:
            (samples, state) of each stream, in the order of ``pieces``. None shares memory with another.

        Raises:
            OptionError: as for :meth:`push`; then no piece of any stream was computed.
        """
        for i, (state, mel, final) in enumerate(pieces):
            self._check(f"pieces[{i}]", state, mel, final)
        alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for i, (state, mel, final) in enumerate(pieces):
            alike[state.shapes, len(mel), mel.dtype, final].append(i)
        results: dict[int, tuple[Tensor, StreamState]] = {}
        for indices in itertools.chain(*map(_halved, alike.values())):
            states, mels, finals = zip(*(pieces[i] for i in indices), strict=True)
            results.update(zip(indices, self._advance(states, torch.stack(mels), finals[0]), strict=True))
        return [results[i] for i in range(len(pieces))]

    def state_bytes(self) -> int:
        """Bytes that a stream holds from its first full context on, whatever its length: 3.9 MB at released size."""
        with torch.device("meta"):
            model = BigVGAN(self.model.config)
        model.to(self.model.conv_pre.weight.dtype)
        frames = sum(receptive_field(model.config)) + 1
        mel = torch.empty(frames, model.config.mel_dim, device="meta")
        _, state = StreamingVocoder(model).push(StreamState(), mel)
        return state.nbytes

    def _check(self, name: str, state: StreamState, mel: Tensor, final: bool) -> None:
        bins = self.model.config.mel_dim
        if mel.ndim != 2 or mel.shape[1] != bins:
            raise OptionError(
                f"{name}: got a mel of shape {list(mel.shape)}, expected [T, {bins}]; frames come before bins"
            )
        if state.finished:
            raise OptionError(
                f"{name}: got a stream that was finished after {state.frames} frames, expected one that goes on; "
                "begin another with start()"
            )
        if final and state.frames + len(mel) == 0:
            raise OptionError(f"{name}: got the end of a stream before its first frame, expected at least one frame")

    def _advance(self, states: Sequence[StreamState], mel: Tensor, final: bool) -> list[tuple[Tensor, StreamState]]:
        """Streams that hold equal shapes, with mel [B, T, M]."""
        if mel.shape[1] == 0 and not final:
            return [(self.model.conv_pre.weight.new_empty(0), state) for state in states]
        run = PiecePass(_unpack(states), final)
        samples = self.model.run(mel, run)
        if final:
            held, shapes = [None] * len(states), ()
        else:
            # One tensor for all layers: streams are stacked and parted in one step.
            held = torch.cat([x.flatten(1) for x in run.kept], 1)
            held = [row.clone() for row in held]
            shapes = tuple((x.shape[1], x.shape[2]) for x in run.kept)
        return [
            (row.clone(), StreamState(state.frames + mel.shape[1], final, values, shapes))
            for row, state, values in zip(samples, states, held, strict=True)
        ]


def _halved(indices: Sequence[int]) -> Iterator[Sequence[int]]:
    """Parts whose numbers are powers of two, largest first.

    A convolution prepares itself for every shape that it meets, which takes as long as it takes to run; so it should
    meet few.
    """
    start = 0
    while start < len(indices):
        count = 1 << (len(indices) - start).bit_length() - 1
        yield indices[start : start + count]
        start += count


def _unpack(states: Sequence[StreamState]) -> Iterator[Tensor] | None:
    """What each layer kept, [B, C, w]; None where nothing has come."""
    rows = [state.held for state in states if state.held is not None]
    if not rows:
        return None
    shapes = states[0].shapes
    parts = torch.stack(rows).split([channels * width for channels, width in shapes], 1)
    return (part.unflatten(1, shape) for part, shape in zip(parts, shapes, strict=True))
