# SPDX-License-Identifier: Apache-2.0
"""Settings over sentences: every rendering against the reference's of the same sentence, times side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..codes_file import CodesFile
from ..encoder import Sound
from ..engine import Token2Wav
from ..engine.request import check_request
from ..engine.token2wav import VoiceLike
from ..errors import OptionError
from .error_rates import ErrorCounts, count_errors
from .figures import Values, compare_sounds
from .joins import join_roughness
from .recognition import Recogniser
from .schemes import Rendered, render
from .settings import Setting
from .soundness import faults
from .spectra import log_mel_distance


@dataclass(frozen=True, eq=False)
class Trial:
    """One sentence by one setting.

    Attributes:
        sentence: its place among the sentences.
        setting: how it was rendered.
        is_reference: whether the others are measured against it.
        sound: what was rendered.
        seconds: wall time.
        figures: against the reference's rendering; empty for the reference.
        faults: what must not be in a sound.
        heard, errors: what the recogniser heard, and errors against the text; None without a recogniser.
    """

    sentence: int
    setting: Setting
    is_reference: bool
    sound: Sound
    seconds: float
    figures: Values
    faults: tuple[str, ...]
    heard: str | None
    errors: ErrorCounts | None


def spread(sentences: Sequence[CodesFile], count: int | None) -> list[CodesFile]:
    """So many of them, evenly over the set; None: all.

    Raises:
        OptionError: less than one, or more than there are.
    """
    if count is None:
        return list(sentences)
    if not 1 <= count <= len(sentences):
        raise OptionError(f"sentences: got {count}, expected 1 to {len(sentences)}")
    return [sentences[i * len(sentences) // count] for i in range(count)]


class Study:
    """Settings over sentences, on one checkpoint.

    Args:
        settings: what is compared; names must differ.
        against: the reference.
        sentences: codes, with texts where a recogniser listens.
        source: checkpoint; None: the embedded voice.
        voice: who speaks; None: the checkpoint's default.
        device: where to compute.
        recogniser: counts word errors; None: no words.

    Raises:
        OptionError: no settings or sentences, a setting twice, or a recogniser without texts.
        CodesError: illegal codes, or those of another checkpoint.
    """

    def __init__(
        self,
        settings: Sequence[Setting],
        against: Setting,
        sentences: Sequence[CodesFile],
        source: str | os.PathLike[str] | None = None,
        voice: VoiceLike = None,
        device: str = "cpu",
        recogniser: Recogniser | None = None,
    ) -> None:
        names = [setting.name for setting in settings]
        twice = sorted({name for name in names if names.count(name) > 1})
        if not names or twice:
            raise OptionError(f"settings: got {', '.join(twice) or 'none'}{' twice' * bool(twice)}, expected each once")
        if not sentences:
            raise OptionError("sentences: got none, expected at least one")
        mute = [i for i, sentence in enumerate(sentences) if not sentence.text]
        if recogniser is not None and mute:
            raise OptionError(f"sentences: got no text with sentence {mute[0]}, expected one with each to count words")
        self.settings, self.against, self.sentences = tuple(settings), against, tuple(sentences)
        self._source, self._device, self._voice, self._recogniser = source, device, voice, recogniser
        self._models: dict[str, Token2Wav] = {}
        self.config = self._model(against.dtype).config
        self._codes = []
        for i, sentence in enumerate(sentences):
            sentence.check_fits(self.config, f"sentence {i}")
            self._codes.append(check_request(sentence.codes, self.config, where=f"sentence {i}").values)

    def trials(self) -> Iterator[Trial]:
        """Every sentence by the reference and by all settings, in turn; the order goes round from sentence to sentence.

        Before that each renders the shortest sentence once, uncounted. The seed of a sentence is its place.
        """
        shortest = min(range(len(self._codes)), key=lambda i: len(self._codes[i]))
        ways = [self.against, *self.settings]
        for way in ways:
            self._render(shortest, way)
        for i in range(len(self.sentences)):
            turn = i % len(ways)
            order = [*range(turn, len(ways)), *range(turn)]
            rendered = {w: self._render(i, ways[w]) for w in order}
            for w, way in enumerate(ways):
                yield self._trial(i, way, rendered[w], None if w == 0 else rendered[0])

    def _model(self, dtype: str) -> Token2Wav:
        if dtype not in self._models:
            self._models[dtype] = Token2Wav.from_pretrained(self._source, device=self._device, dtype=dtype)
        return self._models[dtype]

    def _render(self, sentence: int, setting: Setting) -> Rendered:
        return render(self._model(setting.dtype), self._codes[sentence], self._voice, sentence, setting)

    def _trial(self, sentence: int, setting: Setting, ours: Rendered, reference: Rendered | None) -> Trial:
        sound = Sound(ours.samples, self.config.sample_rate)
        heard, errors = None, None
        if self._recogniser is not None:
            heard = self._recogniser.hear(sound.samples, sound.rate)
            errors = count_errors(heard, self.sentences[sentence].text or "")
        figures = {} if reference is None else self._figures(ours, reference)
        found = tuple(faults(ours.samples))
        return Trial(sentence, setting, reference is None, sound, ours.seconds, figures, found, heard, errors)

    def _figures(self, ours: Rendered, reference: Rendered) -> Values:
        rate, clock = self.config.sample_rate, self.config.clock
        flow = log_mel_distance(ours.mel, reference.mel, clock.block_frames)
        block_s = clock.block_frames * clock.samples_per_frame / rate
        joins = [clock.samples_per_frame * frame for frame in ours.joins]
        rough, its = (join_roughness(one.samples, rate, joins) for one in (ours, reference))
        return {
            "flow_mel": flow.mean,
            "flow_mel_worst_block": flow.worst_block,
            **compare_sounds(Sound(ours.samples, rate), Sound(reference.samples, rate), round(100 * block_s)),
            "join_roughness": rough,
            "join_roughness_added": None if rough is None or its is None else rough - its,
        }
