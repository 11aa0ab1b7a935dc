# SPDX-License-Identifier: Apache-2.0
"""Log-mel against the formula in float64 and transformers' filters; nearest centroids against a full search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from blockwave import CheckpointError
from blockwave.embedded import FOLDER
from blockwave.encoder import Codebook, Sound, log_mel, reference_mel
from blockwave.encoder.log_mel import mel_filters
from blockwave.weights.load import load_config


def noise(length: int) -> np.ndarray:
    return (0.1 * np.random.default_rng(length).normal(size=length)).astype(np.float32)


def test_filters_are_slaneys():
    from transformers.audio_utils import mel_filter_bank

    expected = mel_filter_bank(513, 80, 0.0, 8000.0, 16_000, norm="slaney", mel_scale="slaney").T
    np.testing.assert_allclose(mel_filters().numpy(), expected, rtol=0, atol=2e-7 * expected.max())


@pytest.mark.parametrize("frames", [3, 4, 50])
def test_log_mel_is_the_formula(frames: int):
    samples = noise(160 * frames)
    padded = np.pad(samples.astype(np.float64), 432, mode="reflect")
    window = np.zeros(1024)
    window[192:832] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(640) / 640)
    spectrum = np.abs(np.fft.rfft([padded[i * 160 : i * 160 + 1024] * window for i in range(frames)]))
    expected = np.log(np.maximum(spectrum @ mel_filters().double().numpy().T, 1e-5))
    np.testing.assert_allclose(log_mel(samples, frames), expected, rtol=0, atol=1e-4)


def test_silence_is_the_floor():
    assert np.allclose(log_mel(np.zeros(1600, np.float32), 10), np.log(1e-5))


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_a_tone_is_in_its_bin_at_every_rate(rate: int):
    """1 kHz is mel 15 of Slaney's scale, whose 82 edges run to 8 kHz in even steps."""
    sound = Sound(np.sin(2 * np.pi * 1000 * np.arange(rate) / rate).astype(np.float32), rate)
    mel = reference_mel(sound)
    assert mel.shape == (100, 80)
    top = 15 + np.log(8) * 27 / np.log(6.4)
    assert abs(mel[20:80].mean(0).argmax() - (15 / top * 81 - 1)) <= 1


@pytest.mark.parametrize(
    ("length", "rate", "codes"), [(24_000, 24_000, 50), (24_479, 24_000, 50), (44_100, 44_100, 50)]
)
def test_whole_codes_only(length: int, rate: int, codes: int):
    book = Codebook.load(FOLDER / "codebook.safetensors")
    assert len(book.encode_sound(Sound(noise(length), rate))) == codes


def test_codes_are_the_nearest_centroids():
    rng = np.random.default_rng(0)
    book = Codebook(rng.normal(size=(300, 160)).astype(np.float32) - 5, first_id=7, quiet=-9.0)
    mel = (rng.normal(size=(200, 80)) * 2 - 6).astype(np.float32)
    patches = np.maximum(mel, -9.0).reshape(100, 160).astype(np.float64)
    distances = ((patches[:, None] - book.centroids.astype(np.float64)) ** 2).sum(-1)
    np.testing.assert_array_equal(book.encode(mel), distances.argmin(1) + 7)


def test_centroids_encode_to_themselves():
    book = Codebook.load(FOLDER / "codebook.safetensors")
    mel = book.centroids.astype(np.float32).reshape(-1, 80)
    assert (book.encode(mel) == np.arange(1, 4097)).mean() > 0.99  # a few lie below the quiet floor


def test_the_hash_is_of_the_centroids():
    book = Codebook.load(FOLDER / "codebook.safetensors")
    changed = book.centroids.copy()
    changed[0, 0] += 1
    assert Codebook(changed, 1, -9.0).hash != book.hash == Codebook(book.centroids.copy(), 1, -9.0).hash


@pytest.mark.parametrize(
    ("arrays", "about", "message"),
    [
        ({"other": np.zeros((2, 160))}, {"quiet": "-9", "first_id": "1"}, "no codebook with centroids"),
        ({"centroids": np.zeros((2, 160))}, {}, "no codebook with centroids"),
        (
            {"centroids": np.zeros((2, 81))},
            {"quiet": "-9", "first_id": "1"},
            r"got centroids \[2, 81\], expected finite",
        ),
        ({"centroids": np.full((2, 160), np.nan)}, {"quiet": "-9", "first_id": "1"}, "expected finite"),
        ({"centroids": np.zeros((2, 160))}, {"quiet": "-9", "first_id": "1"}, "it belongs to another checkpoint"),
    ],
)
def test_broken_codebooks(tmp_path, arrays, about, message):
    save_file(arrays, tmp_path / "codebook.safetensors", about)
    with pytest.raises(CheckpointError, match=message):
        Codebook.of_checkpoint(tmp_path, load_config(FOLDER))


def test_reference_mels_of_tensors_do_not_need_soxr(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "soxr", None)
    assert reference_mel(Sound(noise(16_000), 16_000)).shape == (100, 80)
    assert torch.get_num_threads() >= 1
