# SPDX-License-Identifier: Apache-2.0
"""The two comparisons of ``verify``: with transformers itself, and with the waveform that its tests store."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import read_bytes, read_npy
from ..codes_file import CodesFile, load_codes
from ..config import Token2WavConfig
from ..errors import CodesError, OptionError
from ..quality import EXACT_BAR, Comparison, compare, correlation, largest_difference, share_of_largest
from . import options

_FIXTURE_TOLERANCE = 5e-3  # of transformers' test of this fixture
# The talker codes of transformers' regression fixture (tests/fixtures/qwen2_5_omni), real output of Qwen2.5-Omni-7B.
REAL_CODES = [3380, 1835, 6379, *[2557] * 3, 2983, 6379, 6379, 4632, *[5194] * 90, 3380, *[5194] * 18]

Result = tuple[list[Comparison], dict[str, Any]]


def against_transformers(
    model: str | None, codes: str | None, voice: str | None, seed: int, settings: dict[str, Any], float64: bool
) -> Result:
    """Both libraries on one checkpoint, from the same noise; with ``float64`` also how far each is from float64."""
    import torch

    from ..engine import Token2Wav
    from ..integrations.reference import load_reference, reference_mel, reference_wave
    from ..mel.noise import seeded_noise
    from ..waveform import vocode

    folder, config = options.open_checkpoint(model)
    spoken_by = options.find_voice(voice, folder, config)
    file = _codes_for(config) if codes is None else load_codes(codes)
    file.check_fits(config, codes or "codes")
    reference = load_reference(folder)
    ours = Token2Wav.from_pretrained(folder)
    speech = ours(file.codes, spoken_by, seed, **settings)
    noise = seeded_noise(seed, len(speech.mel), config.dit.mel_dim)
    kept = torch.from_numpy(_spoken(file.codes, config, speech.num_codes))
    asked = {"num_steps": settings["steps"], "guidance_scale": settings["guidance"]}
    mel = reference_mel(reference, kept, spoken_by, noise, **asked)
    wave = reference_wave(reference, mel)
    alone = vocode(ours.engine.vocoder, [mel])[0]
    rows = compare(speech.mel, mel.numpy(), speech.samples, wave.numpy())
    vocoder = share_of_largest(alone.numpy(), wave.numpy())
    rows.append(Comparison("vocoder alone", "of the largest value", vocoder, f"<= {EXACT_BAR}", vocoder <= EXACT_BAR))
    if float64:
        exact = Token2Wav.from_pretrained(folder, dtype="float64")(file.codes, spoken_by, seed, **settings)
        for name, its_mel, its_wave in (
            ("this engine", speech.mel, speech.samples),
            ("the reference", mel.numpy(), wave.numpy()),
        ):
            rows.append(Comparison("mel", f"{name} to float64", largest_difference(its_mel, exact.mel)))
            share = share_of_largest(its_wave, exact.samples)
            rows.append(Comparison("waveform", f"{name} to float64, of the largest value", share))
    about = {
        "checkpoint": str(folder),
        "transformers": metadata.version("transformers"),
        "voice": spoken_by.name,
        "codes": speech.num_codes,
        "seed": seed,
        **settings,
    }
    return rows, about


def against_fixture(model: str | None, path: Path, voice: str | None, noise: Path | None) -> Result:
    """This engine against the waveform stored with transformers' tests, every 28th sample of 57120.

    Raises:
        OptionError: voice or noise are not given: the file names neither, so the sounds would not be comparable.
    """
    from ..engine import Token2Wav

    stored = _read_fixture(path)
    if voice is None or noise is None:
        lacking = " and ".join(name for name, given in (("--voice", voice), ("--noise", noise)) if given is None)
        raise OptionError(
            f"{path}: not comparable without {lacking}; the file names neither the voice nor the noise that its "
            "waveform was made with (its model was loaded in bfloat16, seed 0, on a device that is not said)"
        )
    folder, config = options.open_checkpoint(model)
    ours = Token2Wav.from_pretrained(folder)
    given = _read_noise(noise)
    speech = ours(stored["talker_codes"], options.find_voice(voice, folder, config), noise=given)
    expected = np.asarray(stored["waveform_strided"], np.float32)
    length = int(stored["waveform_length"])
    rows = [Comparison("length", "samples", len(speech.samples), f"= {length}", len(speech.samples) == length)]
    picked = speech.samples[:: int(stored["waveform_stride"])]
    if picked.shape == expected.shape:
        furthest = largest_difference(picked, expected)
        passed = furthest <= _FIXTURE_TOLERANCE
        rows += [
            Comparison("waveform", "largest difference", furthest, f"<= {_FIXTURE_TOLERANCE}", passed),
            Comparison("waveform", "correlation", correlation(picked, expected)),
        ]
    return rows, {"checkpoint": str(folder), "fixture": str(path), "voice": speech.voice, "noise": str(noise)}


def _codes_for(config: Token2WavConfig) -> CodesFile:
    """A sequence that means something to the checkpoint, as far as one is known."""
    from ..codes import QWEN2_5_OMNI
    from ..embedded import held_out, is_embedded_family

    if is_embedded_family(config.family.name):
        return held_out()[0]
    if config.family == QWEN2_5_OMNI and config.dit.num_embeds >= max(REAL_CODES):
        return CodesFile(np.array(REAL_CODES), config.family.name)
    drawn = np.random.default_rng(0).integers(1, config.dit.num_embeds + 1, len(REAL_CODES))
    return CodesFile(drawn[~np.isin(drawn, sorted(config.family.special))], config.family.name)


def _spoken(codes: np.ndarray, config: Token2WavConfig, count: int) -> np.ndarray:
    """The codes without the family's special ids, as the engine rendered them."""
    from ..codes import check_codes

    kept = check_codes(codes, config.dit.num_embeds, config.family).values
    assert len(kept) == count
    return kept


def _read_fixture(path: Path) -> dict[str, Any]:
    keys = {"talker_codes", "waveform_length", "waveform_stride", "waveform_strided"}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CodesError(f"{path}: cannot be read as JSON ({error}); expected transformers' audio fixture") from None
    if not isinstance(stored, dict) or not keys <= stored.keys():
        raise CodesError(f"{path}: no audio fixture of transformers, expected the keys {sorted(keys)}")
    numbers = stored["waveform_strided"]
    sizes = [stored["waveform_length"], stored["waveform_stride"]]
    if not all(type(size) is int and size >= 1 for size in sizes) or not _are_numbers(numbers):
        raise CodesError(f"{path}: got length and stride {sizes}, expected integers >= 1 and samples that are numbers")
    return stored


def _are_numbers(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


def _read_noise(path: Path) -> np.ndarray:
    noise = read_npy(read_bytes(path, OptionError, "noise"), f"noise {path}", OptionError)
    if noise.dtype.kind != "f":
        raise OptionError(f"noise {path}: got {noise.dtype}, expected npy with floats [T, 80]")
    return noise
