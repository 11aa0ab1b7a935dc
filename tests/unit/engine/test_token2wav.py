# SPDX-License-Identifier: Apache-2.0
"""The Python surface: shapes, seeds, lists, messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from blockwave import CodesError, OptionError, Speech, Token2Wav, Voice, VoiceError
from blockwave.weights.make import make_checkpoint

BOUND = 1e-5
STEPS = 3  # enough to go through every stage


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("surface") / "checkpoint", "tiny")


@pytest.fixture(scope="module")
def model(folder: Path) -> Token2Wav:
    return Token2Wav.from_pretrained(folder)


def codes_of(length: int) -> list[int]:
    return np.random.default_rng(length).integers(1, 8194, length).tolist()


def difference(a: Speech, b: Speech) -> float:
    assert a.samples.shape == b.samples.shape
    mel = np.abs(a.mel - b.mel).max() / np.abs(b.mel).max()
    return float(max(mel, np.abs(a.samples - b.samples).max() / np.abs(b.samples).max()))


@pytest.mark.parametrize("length", [1, 2, 11, 12, 13, 35, 36, 37, 71, 72, 73, 100])
def test_every_code_becomes_480_samples(model: Token2Wav, length: int) -> None:
    speech = model(codes_of(length), seed=0, steps=2)
    assert speech.samples.shape == (480 * length,)
    assert speech.samples.dtype == np.float32
    assert speech.mel.shape == (2 * length, 80)
    assert speech.sample_rate == 24_000
    assert speech.duration_s == pytest.approx(length / 50)
    assert np.abs(speech.samples).max() <= 1
    assert speech.num_codes == length


def test_integers_of_every_kind_mean_the_same(model: Token2Wav) -> None:
    codes = codes_of(7)
    usual = model(codes, seed=1, steps=2).samples
    kinds = [
        tuple(codes),
        np.array(codes, np.int16),
        np.array(codes, np.uint64),
        torch.tensor(codes, dtype=torch.int32),
    ]
    kinds += [[torch.tensor(code) for code in codes], np.array(codes)[::-1][::-1]]
    for kind in kinds:
        np.testing.assert_array_equal(model(kind, seed=np.int64(1), steps=2).samples, usual)


def test_lists_and_stacks_give_lists(model: Token2Wav) -> None:
    rows = np.array([codes_of(5), codes_of(5)])
    for batch in (rows, rows.tolist(), torch.from_numpy(rows), [rows[0], rows[1].tolist()]):
        speeches = model(batch, seed=[1, 2], steps=2)
        assert [len(speech.samples) for speech in speeches] == [2400, 2400]
        assert [speech.seed for speech in speeches] == [1, 2]
    assert len(model(rows[:1], seed=0, steps=2)) == 1


@pytest.mark.parametrize("limit", [2, 7, 340])
def test_any_packing_equals_lone_runs(model: Token2Wav, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Unequal lengths and references of unequal length, one batch or many."""
    monkeypatch.setattr(model.engine.scheduler, "max_blocks", limit)
    codes = [codes_of(length) for length in (3, 50, 119, 12, 1)]
    voices = ["Chelsie", "Ethan", "Ethan", "Chelsie", "Ethan"]
    together = model(codes, voice=voices, seed=list(range(5)), steps=STEPS)
    backwards = model(codes[::-1], voice=voices[::-1], seed=list(range(5))[::-1], steps=STEPS)[::-1]
    for i in range(5):
        alone = model(codes[i], voice=voices[i], seed=i, steps=STEPS)
        assert difference(together[i], alone) <= BOUND
        assert difference(backwards[i], alone) <= BOUND
        assert together[i].voice == voices[i]


def test_a_seed_belongs_to_its_request(model: Token2Wav) -> None:
    codes = codes_of(9)
    state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = model(codes, seed=5, steps=2)
    model(codes_of(30), seed=6, steps=2)
    np.testing.assert_array_equal(model(codes, seed=5, steps=2).samples, first.samples)
    assert difference(model(codes, seed=6, steps=2), first) > 1e-3
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


def test_a_fresh_seed_is_told_and_repeats_the_sound(model: Token2Wav) -> None:
    codes = codes_of(4)
    first, second = model(codes, steps=2), model(codes, steps=2)
    assert first.seed != second.seed
    np.testing.assert_array_equal(model(codes, seed=first.seed, steps=2).samples, first.samples)


def test_noise_instead_of_a_seed(model: Token2Wav) -> None:
    codes = codes_of(6)
    noise = torch.randn(12, 80, generator=torch.Generator().manual_seed(8))
    seeded = model(codes, seed=8, steps=2)
    for given in (noise, noise.numpy(), noise.double()):
        speech = model(codes, noise=given, steps=2)
        np.testing.assert_array_equal(speech.samples, seeded.samples)
        assert speech.seed is None
    pair = model([codes, codes], noise=[noise, noise], steps=2)
    assert difference(pair[1], seeded) <= BOUND


def test_special_ids_are_stripped_and_the_end_is_told(model: Token2Wav) -> None:
    codes = codes_of(5)
    usual = model(codes, seed=0, steps=2)
    assert not usual.ended
    for framed in ([8293, *codes, 8294], [*codes, 8292, 8292], [8293, *codes, 8294, 8292, 8296]):
        speech = model(framed, seed=0, steps=2)
        np.testing.assert_array_equal(speech.samples, usual.samples)
        assert speech.ended


def test_a_maximum_duration_tells_what_it_cut(model: Token2Wav) -> None:
    speech = model(codes_of(30), seed=0, steps=2, max_duration_s=0.2)
    assert (speech.num_codes, speech.num_codes_cut) == (10, 20)
    assert len(speech.samples) == 4800
    assert model(codes_of(10), seed=0, steps=2, max_duration_s=0.2).num_codes_cut == 0


def test_the_default_voice_speaks_and_is_named(model: Token2Wav) -> None:
    assert model(codes_of(2), seed=0, steps=2).voice == "Chelsie"
    assert model(codes_of(2), voice="eThAn", seed=0, steps=2).voice == "Ethan"


def test_a_voice_of_ones_own(model: Token2Wav) -> None:
    chelsie = model.voice("Chelsie")
    own = Voice("mine", chelsie.xvector, chelsie.reference_mel[:40])
    speech = model(codes_of(4), voice=own, seed=0, steps=2)
    assert speech.voice == "mine"
    assert difference(speech, model(codes_of(4), voice="Chelsie", seed=0, steps=2)) > 1e-4


def test_timings_say_what_they_are(model: Token2Wav) -> None:
    for speech in model([codes_of(10), codes_of(20)], seed=0, steps=2):
        timings = speech.timings
        assert timings.batch_audio_s == pytest.approx(30 / 50)
        assert timings.batch_requests == 2
        assert min(timings.condition_s, timings.flow_s, timings.vocoder_s) > 0
        assert timings.rtf == pytest.approx(timings.total_s / 0.6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_runs_near_float32(folder: Path, model: Token2Wav, dtype: str) -> None:
    half = Token2Wav.from_pretrained(folder, dtype=dtype)
    codes = codes_of(13)
    error = difference(half(codes, seed=0, steps=STEPS), model(codes, seed=0, steps=STEPS))
    assert BOUND < error < 0.2  # measured, not exact, and not silently float32


LONGEST = 32768 // 2
BAD_CALLS = {
    "empty": ({"codes": []}, CodesError, "codes: got an empty sequence, expected at least one code"),
    "floats": (
        {"codes": [1.0, 2.0]},
        CodesError,
        "codes: got float64 values, expected integers; ",
    ),
    "illegal id": (
        {"codes": [1, -1]},
        CodesError,
        "codes: got id -1 at position 1, expected 0..8193; special ids of qwen2.5-omni: [8292, 8293, 8294, 8296]; "
        "check that the codes were made for this checkpoint",
    ),
    "one of a list": (
        {"codes": [[1], [9999]]},
        CodesError,
        "codes[1]: got id 9999 at position 0, expected 0..8193; special ids of qwen2.5-omni: "
        "[8292, 8293, 8294, 8296]; check that the codes were made for this checkpoint",
    ),
    "too long": (
        {"codes": [1] * (LONGEST + 1)},
        CodesError,
        "codes: got 16385 codes = 32770 mel frames, expected at most max_position_embeddings = 32768 frames; "
        "set max_duration_s, or ask for any length",
    ),
    "three axes": (
        {"codes": np.ones((1, 2, 16), int)},
        CodesError,
        "codes: got shape [1, 2, 16], expected [N] or [B, N]; codes of several codebooks per step (12 Hz codecs) "
        "belong to another decoder",
    ),
    "unknown voice": ({"voice": "nobody"}, VoiceError, "nobody"),
    "voice width": (
        {"voice": Voice("v", np.ones(5), np.ones((9, 80)))},
        VoiceError,
        "voice v: got an x-vector of 5 values, expected 192",
    ),
    "steps": (
        {"steps": 1},
        OptionError,
        "steps: got 1, expected an integer from 2 to 1000; steps counts time points, 10 points are 9 steps",
    ),
    "sway": (
        {"sway": 5.0},
        OptionError,
        "sway: got 5.0, expected a number from -1 to 1.75, or None; time must run forward",
    ),
    "sway nan": ({"sway": float("nan")}, OptionError, "sway: got nan, expected a number from -1 to 1.75, or None"),
    "solver": (
        {"solver": "heun"},
        OptionError,
        "solver: got 'heun', expected one of ['euler', 'midpoint', 'rk2', 'rk4']",
    ),
    "guidance": (
        {"guidance": float("inf")},
        OptionError,
        "guidance: got inf, expected a finite number; 0 turns guidance off",
    ),
    "guidance text": ({"guidance": "much"}, OptionError, "guidance: got 'much', expected a finite number"),
    "seed": ({"seed": -1}, OptionError, "seed: got -1, expected an integer from 0 to 4294967295"),
    "seed type": ({"seed": 0.5}, OptionError, "seed: got 0.5, expected an integer"),
    "seed bool": ({"seed": True}, OptionError, "seed: got True, expected an integer"),
    "seeds for one": (
        {"seed": [1, 2]},
        OptionError,
        "seed: got 2 values for one sequence of codes, expected a single one",
    ),
    "seeds for three": (
        {"codes": [[1], [2], [3]], "seed": [1, 2]},
        OptionError,
        "seed: got 2 values for 3 sequences of codes, expected as many or one",
    ),
    "noise and seed": (
        {"noise": np.zeros((4, 80)), "seed": 1},
        OptionError,
        "noise: got noise and seed 1, expected one of them; the noise is all a seed decides",
    ),
    "noise shape": (
        {"noise": np.zeros((3, 80))},
        OptionError,
        "noise: got torch.float32 [3, 80], expected floats [4, 80]",
    ),
    "noise nan": (
        {"noise": np.full((4, 80), np.nan)},
        OptionError,
        "noise: got NaN or infinity, expected finite numbers",
    ),
    "noise count": (
        {"codes": [[1], [2]], "noise": [np.zeros((2, 80))]},
        OptionError,
        "noise: got 1 arrays for 2 sequences of codes, expected one for each",
    ),
    "duration": (
        {"max_duration_s": 0.0},
        OptionError,
        "max_duration_s: got 0.0, expected at least one code, 0.02 s; pass None for no limit",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_say_what_is_wrong_and_the_next_call_works(model: Token2Wav, name: str) -> None:
    arguments, kind, message = BAD_CALLS[name]
    with pytest.raises(kind) as caught:
        model(**{"codes": [1, 2], "steps": 2, **arguments})
    assert message in str(caught.value)
    assert len(model([1, 2], seed=0, steps=2).samples) == 960


@pytest.mark.parametrize(("option", "value"), [("device", "abacus"), ("device", "cuda:77"), ("dtype", "int8")])
def test_unknown_devices_and_dtypes(folder: Path, option: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"^{option}: got '{value}', expected"):
        Token2Wav.from_pretrained(folder, **{option: value})
