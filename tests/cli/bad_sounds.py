# SPDX-License-Identifier: Apache-2.0
"""What ``encode``, ``verify``, ``demo`` and ``bench`` refuse, and what people are told."""

from __future__ import annotations

import io
import json

import numpy as np
import soundfile

from tests.cli.bad import Bad


def sound(samples: np.ndarray, rate: int = 24_000, subtype: str = "PCM_16") -> bytes:
    """A wav file."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="WAV", subtype=subtype)
    return buffer.getvalue()


def npy(array: np.ndarray) -> bytes:
    """An npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


FIXTURE = json.dumps(
    {"talker_codes": [1, 2], "waveform_length": 960, "waveform_stride": 28, "waveform_strided": [0.0] * 35}
).encode()

SOUNDS = {
    "no such sound": Bad("encode a.wav", 6, "a.wav: got no such file, expected a sound file"),
    "a folder": Bad("encode model", 6, "model: got a folder, expected a sound file"),
    "not a sound": Bad(
        "encode a.wav",
        6,
        "a.wav: not a sound that can be read (...); expected wav, flac, ogg, opus or mp3",
        {"a.wav": b"text"},
    ),
    "an empty file": Bad(
        "encode a.wav",
        6,
        "a.wav: not a sound that can be read (...); expected wav, flac, ogg, opus or mp3",
        {"a.wav": b""},
    ),
    "nothing on standard input": Bad(
        "encode -", 6, "sound: not a sound that can be read (...); expected wav, flac, ogg, opus or mp3"
    ),
    "no samples": Bad(
        "encode a.wav", 6, "a.wav: got no samples, expected sound", {"a.wav": lambda: sound(np.zeros(0))}
    ),
    "too short": Bad(
        "encode a.wav",
        6,
        "sound: got 2 frames of 10 ms, expected at least 3; it is too short",
        {"a.wav": lambda: sound(np.zeros(959))},
    ),
    "shorter than a code": Bad(
        "encode a.wav",
        6,
        "sound: got 0 frames of 10 ms, expected at least 3; it is too short",
        {"a.wav": lambda: sound(np.zeros(100))},
    ),
    "not finite": Bad(
        "encode a.wav",
        6,
        "a.wav: got NaN or infinity among the samples, expected finite numbers",
        {"a.wav": lambda: sound(np.full(9000, np.nan), subtype="FLOAT")},
    ),
    "an absurd rate": Bad(
        "encode a.wav",
        6,
        "a.wav: got a rate of 100 Hz, expected 4000 to 768000 Hz",
        {"a.wav": lambda: sound(np.zeros(9000), 100)},
    ),
    "no codebook": Bad(
        "encode a.wav --model model",
        5,
        "model: has no codebook.safetensors, so sound cannot be turned into its codes; the encoder of Qwen2.5-Omni is "
        "not public, its codes come from the talker",
        {"a.wav": lambda: sound(np.zeros(9000))},
    ),
    "another suffix for codes": Bad(
        "encode a.wav -o codes.npy",
        3,
        "codes.npy: got suffix '.npy', expected .json",
        {"a.wav": lambda: sound(np.zeros(9000))},
    ),
    "codes of another family": Bad(
        "speak qwen.json -o a.wav",
        3,
        "qwen.json: got codes of family 'qwen2.5-omni', expected 'blockwave-heart' as the checkpoint's; the same "
        "numbers mean other sounds there; use the checkpoint that these codes were made for",
        {"qwen.json": b'{"codes": [1, 2], "family": "qwen2.5-omni"}'},
    ),
    "codes of another codebook": Bad(
        "speak old.json -o a.wav",
        3,
        "old.json: got codes of codebook 'abc', expected '634e8597944f7af5' as the checkpoint's; the same numbers mean "
        "other sounds there; use the checkpoint that these codes were made for",
        {"old.json": b'{"codes": [1, 2], "codebook": "abc"}'},
    ),
    "a code beyond the embedded codebook": Bad(
        "speak b.json -o a.wav",
        3,
        "b.json: got id 4097 at position 1, expected 0..4096; check that the codes were made for this checkpoint",
        {"b.json": b"[1, 4097]"},
    ),
}

OTHERS = {
    "demo count": Bad("demo --count 0", 2, "count: got 0, expected 1 to 50"),
    "demo count, too many": Bad("demo --count 51", 2, "count: got 51, expected 1 to 50"),
    "bench codes": Bad("bench stage --codes 0", 2, "codes: got 0, expected an integer >= 1"),
    "bench device": Bad(
        "bench stage --device abacus", 2, "device: got 'abacus', expected a device of this machine (...)"
    ),
    "verify codes": Bad("verify --codes no.json", 3, "no.json: no such file; expected speech codes"),
    "fixture, voice and noise unknown": Bad(
        "verify --model model --fixture f.json",
        2,
        "f.json: not comparable without --voice and --noise; the file names neither the voice nor the noise that its "
        "waveform was made with (its model was loaded in bfloat16, seed 0, on a device that is not said)",
        {"f.json": FIXTURE},
    ),
    "fixture, noise unknown": Bad(
        "verify --model model --fixture f.json --voice Chelsie",
        2,
        "f.json: not comparable without --noise; ...",
        {"f.json": FIXTURE},
    ),
    "fixture, another file": Bad(
        "verify --model model --fixture f.json --voice Chelsie --noise n.npy",
        3,
        "f.json: no audio fixture of transformers, expected the keys ['talker_codes', 'waveform_length', "
        "'waveform_stride', 'waveform_strided']",
        {"f.json": b"{}"},
    ),
    "fixture, broken": Bad(
        "verify --model model --fixture f.json",
        3,
        "f.json: cannot be read as JSON (...); expected transformers' audio fixture",
        {"f.json": b"{"},
    ),
    "fixture, broken noise": Bad(
        "verify --model model --fixture f.json --voice Chelsie --noise n.npy",
        2,
        "noise n.npy: ...",
        {"f.json": FIXTURE, "n.npy": b"x"},
    ),
    "fixture, noise of another length": Bad(
        "verify --model model --fixture f.json --voice Chelsie --noise n.npy",
        2,
        "noise: got torch.float32 [3, 80], expected floats [4, 80]",
        {"f.json": FIXTURE, "n.npy": lambda: npy(np.zeros((3, 80), np.float32))},
    ),
}
