# SPDX-License-Identifier: Apache-2.0
"""What ``compare`` and ``quality`` refuse, and what people are told."""

from __future__ import annotations

import numpy as np

from tests.cli.bad import Bad
from tests.cli.bad_sounds import npy, sound

TONE = np.sin(np.arange(24_000) / 20) / 2
MEL = np.zeros((48, 80), np.float32)


def compare(text: str, message: str, code: int = 2, **files: object) -> Bad:
    """Two sounds a.wav and b.wav, unless ``files`` says otherwise."""
    content = {"a.wav": lambda: sound(TONE), "b.wav": lambda: sound(TONE)}
    return Bad(
        f"compare {text}", code, message, content | {name.replace("_", "."): data for name, data in files.items()}
    )


def quality(text: str, message: str, code: int = 2, **files: bytes) -> Bad:
    """A setting that could be used, unless ``text`` says otherwise."""
    start = "" if "--setting" in text else "--setting exact "
    return Bad(f"quality {start}{text}", code, message, {f"codes/{name}.json": data for name, data in files.items()})


SUFFIXES = ".json, .npy, .npz, .txt, .safetensors"

COMPARISONS = {
    "one is missing": compare("a.wav c.wav", "c.wav: got no such file, expected a sound file", 6),
    "other rate": compare(
        "a.wav b.wav",
        "a.wav: got 24000 Hz and 16000 Hz in b.wav, expected one rate; resample one of them",
        6,
        b_wav=lambda: sound(TONE, 16_000),
    ),
    "other length": compare(
        "a.wav b.wav",
        "a.wav: got 24000 samples (1.000 s) and 23520 samples (0.980 s) in b.wav, expected one length; cut both to "
        "what they share, sample by sample: a shift is a difference too",
        6,
        b_wav=lambda: sound(TONE[480:]),
    ),
    "too short": compare(
        "a.wav a.wav",
        "sound: got 2 frames of 10 ms, expected at least 3; it is too short",
        6,
        a_wav=lambda: sound(TONE[:500]),
    ),
    "a sound and a mel": compare(
        "a.wav m.npy", "compare: got a.wav and m.npy, expected two sounds or two log-mels", m_npy=lambda: npy(MEL)
    ),
    "mels of other lengths": compare(
        "m.npy n.npy",
        "comparison: got shapes [48, 80] and [47, 80], expected equal ones",
        m_npy=lambda: npy(MEL),
        n_npy=lambda: npy(MEL[1:]),
    ),
    "no mel": compare(
        "m.npy m.npy",
        "log-mel m.npy: got int64 [3], expected finite floats [T, M], frames first",
        m_npy=lambda: npy(np.arange(3)),
    ),
    "a mel with NaN": compare(
        "m.npy m.npy",
        "log-mel m.npy: got float32 [48, 80], expected finite floats [T, M], frames first",
        m_npy=lambda: npy(MEL * np.nan),
    ),
    "a broken mel": compare("m.npy m.npy", "log-mel m.npy: ...", m_npy=b"text"),
    "no such mel": compare("m.npy m.npy", "m.npy: no such file; expected a log-mel"),
    "no blocks": compare("a.wav b.wav --block-frames 0", "block-frames: got 0, expected an integer from 1 to 10000"),
    "picture": compare("a.wav b.wav --picture a.jpg", "picture: got 'a.jpg', expected a name that ends in .png"),
}

STUDIES = {
    "no setting": Bad("quality", 2, "Missing option '--setting'. See --help."),
    "unknown setting": quality(
        "--setting euler:7",
        "setting 'euler:7': got 'euler:7', expected exact, window or preset=, solver=, steps=, guidance=, "
        "guidance-per=, sway=, look-ahead=, dtype=; put commas between terms, as solver=euler,steps=7",
    ),
    "setting out of range": quality(
        "--setting exact --against steps=1",
        "steps: got 1, expected an integer from 2 to 1000; steps counts time points, 10 points are 9 steps",
    ),
    "twice": quality("--setting exact --setting exact", "settings: got exact twice, expected each once"),
    "sentences 0": quality("--sentences 0", "sentences: got 0, expected 1 to 50"),
    "sentences 51": quality("--sentences 51", "sentences: got 51, expected 1 to 50"),
    "out": quality("--out r.txt", "out: got 'r.txt', expected the name of a file that ends in .json"),
    "html": quality("--html model", "html: got 'model', expected the name of a file that ends in .html"),
    "html in a file": quality(
        "--html a.json/p.html", "a.json: cannot be written, a.json is a file; expected a folder", 6
    ),
    "sound": quality(
        "--html p.html --sound ogg", "sound: got 'ogg', expected one of flac, wav, opus, mp3, together with --html"
    ),
    "sound without a page": quality(
        "--sound wav", "sound: got 'wav', expected one of flac, wav, opus, mp3, together with --html"
    ),
    "recogniser without words": quality("--recogniser model", "recogniser: got it without --words, expected both"),
    "no recogniser": quality(
        "--words --recogniser model",
        "model: no recogniser, model.bin, tokenizer.json missing; expected a folder with a Whisper model in the format "
        "of CTranslate2",
        5,
    ),
    "codes for another checkpoint": quality(
        "--model model",
        "codes: got none, expected --codes DIR with codes of this checkpoint; the package's sentences are the embedded "
        "voice's",
    ),
    "codes, no folder": quality(
        "--codes a.json", f"a.json: got no folder, expected one with files of codes ({SUFFIXES})", 3
    ),
    "codes, nothing in it": Bad(
        "quality --setting exact --codes x",
        3,
        f"x: got no files of codes, expected some that end in {SUFFIXES}",
        {"x/readme.md": b"x"},
    ),
    "codes, broken": quality("--codes codes", "codes/a.json: broken JSON (...)", 3, a=b"[1, "),
    "codes, illegal": quality(
        "--model model --codes codes", "sentence 0: got id 9000 at position 1, expected 0..8193; ...", 3, a=b"[1, 9000]"
    ),
    "codes without words": quality(
        "--model model --codes codes --words",
        "sentences: got no text with sentence 0, expected one with each to count words",
        a=b"[1, 2]",
    ),
    "voice": quality(
        "--model model --codes codes --voice Nobody",
        "voice: got 'Nobody', expected one of: Chelsie, Ethan; ...",
        4,
        a=b"[1]",
    ),
    "device": quality("--device tpu7", "device: got 'tpu7', expected a device of this machine (...)"),
    "threads": quality("--threads 0", "threads: got 0, expected an integer from 1 to 1024"),
}
