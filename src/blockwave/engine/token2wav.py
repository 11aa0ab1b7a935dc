# SPDX-License-Identifier: Apache-2.0
"""The Python surface: a checkpoint that turns codes into speech."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from ..audio import check_mel, check_samples
from ..codes import CodeReader, check_duration, is_batch
from ..errors import OptionError
from ..mel.noise import check_seed, fresh_seed, seeded_noise
from ..speech import Speech
from ..voice import Voice
from ..weights.hub import resolve
from ..weights.load import load_config, load_into
from ..weights.voices import check_voice, find_voice, load_voices
from .arguments import EXACT, LookAhead, integer, look_ahead_blocks, spread, spread_noise, whole_blocks
from .build import build, check_device, check_dtype
from .bulk import Rendering, render
from .emissions import Emissions
from .engine import Engine
from .live import SpeechStream
from .presets import flow_of
from .request import Request, check_guidance, check_request
from .scheduler import MAX_BATCH_BLOCKS
from .state import stages_of

VoiceLike = str | Voice | None


class Token2Wav:
    """A loaded Token2Wav stage.

    Attributes:
        config: the checkpoint's configuration.
        voices: the checkpoint's voices by name; more may be added.
        engine: what runs requests.
    """

    def __init__(self, engine: Engine, voices: Mapping[str, Voice]) -> None:
        self.engine, self.config, self.voices = engine, engine.config, dict(voices)

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str] | None = None,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | str = torch.float32,
        revision: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
        max_batch_blocks: int = MAX_BATCH_BLOCKS,
    ) -> Token2Wav:
        """Loads a folder, or a checkpoint of the hub by its id; of a whole model only this stage is read.

        Args:
            source: folder with config.json and safetensors files, or a hub id such as "Qwen/Qwen2.5-Omni-7B". None: the
                small voice inside the package.
            device: where to compute.
            dtype: float32 is exact. bfloat16 and float16 hold for the transformer's matrix products only.
            revision, cache_dir, local_files_only: of the hub download.
            max_batch_blocks: blocks in a batch, all requests and branches counted; more are faster where the
                device is not yet busy, and a stream that joins waits longer for the batch before it.

        Raises:
            CheckpointError, ConfigError, VoiceError: the checkpoint is missing, incomplete or contradicts itself.
            OptionError: an unknown device or dtype.
            MissingExtraError: a hub id without huggingface_hub installed.
        """
        place, kind = check_device(device), check_dtype(dtype)
        folder = resolve(source, revision=revision, cache_dir=cache_dir, local_files_only=local_files_only)
        config = load_config(folder)
        voices = load_voices(folder)
        for voice in voices.values():
            check_voice(voice, config.dit)
        dit, vocoder = build(config, place, kind)
        load_into(dit, vocoder, folder, config)
        return cls(Engine(dit, vocoder, config, max_batch_blocks), voices)

    @overload
    def __call__(
        self,
        codes: Sequence[int],
        voice: VoiceLike = ...,
        seed: int | None = ...,
        *,
        noise: Any = ...,
        preset: str = ...,
        steps: int | None = ...,
        guidance: float = ...,
        sway: float | None = ...,
        solver: str | None = ...,
        guidance_per: str | None = ...,
        max_duration_s: float | None = ...,
        any_length: bool = ...,
    ) -> Speech: ...

    @overload
    def __call__(
        self,
        codes: Sequence[Sequence[int]],
        voice: VoiceLike | Sequence[VoiceLike] = ...,
        seed: int | Sequence[int | None] | None = ...,
        *,
        noise: Any = ...,
        preset: str = ...,
        steps: int | None = ...,
        guidance: float = ...,
        sway: float | None = ...,
        solver: str | None = ...,
        guidance_per: str | None = ...,
        max_duration_s: float | None = ...,
        any_length: bool = ...,
    ) -> list[Speech]: ...

    @overload
    def __call__(
        self,
        codes: np.ndarray | Tensor | Sequence[Any],
        voice: VoiceLike | Sequence[VoiceLike] = ...,
        seed: int | Sequence[int | None] | None = ...,
        *,
        noise: Any = ...,
        preset: str = ...,
        steps: int | None = ...,
        guidance: float = ...,
        sway: float | None = ...,
        solver: str | None = ...,
        guidance_per: str | None = ...,
        max_duration_s: float | None = ...,
        any_length: bool = ...,
    ) -> Any: ...

    def __call__(
        self,
        codes: Any,
        voice: VoiceLike | Sequence[VoiceLike] = None,
        seed: int | Sequence[int | None] | None = None,
        *,
        noise: Any = None,
        preset: str = "exact",
        steps: int | None = None,
        guidance: float = 0.5,
        sway: float | None = -1.0,
        solver: str | None = None,
        guidance_per: str | None = None,
        max_duration_s: float | None = None,
        any_length: bool = False,
    ) -> Any:
        """Renders one sequence of codes, or a list of them.

        Args:
            codes: integers [N], or several such sequences (list, or array [B, N]): list in, list out.
            voice: name or :class:`Voice`; one for all, or one for each. None: the checkpoint's declared default.
            seed: of the noise, one for each sequence; a single seed holds for every sequence of a list. None: fresh.
            noise: float [T, M] instead of a seed, T = repeats * N; for a list, one for each sequence.
            preset: "exact", or "fast" or "faster": fewer evaluations, at a measured distance from the exact sound. It
                stands for steps, solver and guidance_per where those are None.
            steps: time points of the solve, >= 2; 10 points are 9 steps. None: 10 of "exact".
            guidance: weight of classifier-free guidance; below 1e-5 the unconditional branch is not computed.
            sway: warp of the time points, or None.
            solver: "rk4" (Kutta's 3/8 rule), "rk2" (two stages), "midpoint" or "euler". None: rk4 of "exact".
            guidance_per: "evaluation", or "step": the unconditional branch is evaluated once a step. None: the first,
                of "exact".
            max_duration_s: longest sound; what is cut is in ``num_codes_cut``. None: no limit.
            any_length: go beyond the checkpoint's max_position_embeddings, further than it was trained for.

        Raises:
            CodesError, VoiceError, OptionError: before anything is computed, naming the item in a list.
        """
        flow = flow_of(preset, steps, sway, solver, guidance_per)
        max_codes = check_duration(max_duration_s, self.config.clock)
        batch = is_batch(codes)
        items = list(codes) if batch else [codes]
        per_item = zip(
            items,
            spread("voice", voice, len(items), batch),
            spread("seed", seed, len(items), batch),
            spread_noise(noise, len(items), batch),
            strict=True,
        )
        requests = []
        for i, (item, its_voice, its_seed, its_noise) in enumerate(per_item):
            checked = check_request(item, self.config, max_codes, f"codes[{i}]" if batch else "codes", any_length)
            start, its_seed = self._noise(its_noise, its_seed, self.config.clock.num_frames(len(checked)))
            requests.append(Request(checked, self.voice(its_voice), start, its_seed, guidance))
        renderings = render(self.engine, requests, flow)
        speeches = [self._speech(*pair) for pair in zip(requests, renderings, strict=True)]
        return speeches if batch else speeches[0]

    def stream(
        self,
        voice: VoiceLike = None,
        seed: int | None = None,
        *,
        first_chunk_codes: int | None = None,
        chunk_codes: int | None = None,
        look_ahead: LookAhead = 1,
        preset: str = "exact",
        steps: int | None = None,
        guidance: float = 0.5,
        sway: float | None = -1.0,
        solver: str | None = None,
        guidance_per: str | None = None,
        any_length: bool = False,
    ) -> SpeechStream:
        """A live stream: codes are fed as they are made, sound comes out as soon as it is determined.

        Args:
            voice, seed, preset, steps, guidance, sway, solver, guidance_per: as for a call.
            first_chunk_codes, chunk_codes: codes of the first emission and of each later one, whole blocks. None: one
                block and three, 12 and 36 codes of Qwen2.5-Omni.
            look_ahead: blocks beyond an emission that are computed for it: 0, 1, 2, ..., an approximation that is the
                better the more there are; or "exact", which gives the offline result in memory that does not grow, and
                lags by as many blocks as there are evaluations (36 for the defaults, 8.6 s).
            any_length: go beyond the checkpoint's max_position_embeddings.

        Raises:
            OptionError, VoiceError: before anything is computed.
        """
        flow, spoken_by = flow_of(preset, steps, sway, solver, guidance_per), self.voice(voice)
        check_guidance(guidance)
        seed = fresh_seed() if seed is None else check_seed(integer("seed", seed))
        dit = self.config.dit
        emissions = Emissions(
            whole_blocks("first_chunk_codes", first_chunk_codes, self.config.clock, 1),
            whole_blocks("chunk_codes", chunk_codes, self.config.clock, 3),
            None if isinstance(look_ahead, str) and look_ahead == EXACT else look_ahead_blocks(look_ahead),
            # Twice the least window: enough blocks under way to fill batches.
            2 * len(stages_of(flow)) * max(len(dit.look_ahead_layers), 1) + 2,
        )
        limit = None if any_length else dit.max_position_embeddings // dit.repeats
        reader = CodeReader(dit.num_embeds, self.config.family, limit)
        return SpeechStream(self.engine, spoken_by, seed, flow, guidance, emissions, reader)

    def voice(self, voice: VoiceLike = None) -> Voice:
        """A voice by name (case-insensitive), checked; None means the checkpoint's declared default.

        Raises:
            VoiceError: unknown, no default, or not of the checkpoint's shapes.
        """
        if isinstance(voice, Voice):
            check_voice(voice, self.config.dit)
            return voice
        return find_voice(self.voices, voice, self.config.default_voice)

    def _noise(self, noise: Any, seed: int | None, num_frames: int) -> tuple[Tensor, int | None]:
        shape = (num_frames, self.config.dit.mel_dim)
        if noise is None:
            seed = fresh_seed() if seed is None else check_seed(integer("seed", seed))
            return seeded_noise(seed, *shape), seed
        if seed is not None:
            raise OptionError(
                f"noise: got noise and seed {seed}, expected one of them; the noise is all a seed decides"
            )
        given = noise if isinstance(noise, Tensor) else torch.from_numpy(np.array(noise, np.float32))
        if tuple(given.shape) != shape or not given.is_floating_point():
            raise OptionError(f"noise: got {given.dtype} {list(given.shape)}, expected floats {list(shape)}")
        if not bool(given.isfinite().all()):
            raise OptionError("noise: got NaN or infinity, expected finite numbers")
        return given, None

    def _speech(self, request: Request, rendering: Rendering) -> Speech:
        samples, mel = (x.to("cpu", torch.float32).numpy() for x in (rendering.samples, rendering.mel))
        check_mel(mel)
        check_samples(samples)
        return Speech(
            samples=samples,
            sample_rate=self.config.sample_rate,
            mel=mel,
            seed=request.seed,
            voice=request.voice.name,
            timings=rendering.timings,
            num_codes=len(request.codes),
            ended=request.codes.ended,
            num_codes_cut=request.codes.num_cut,
        )
