# SPDX-License-Identifier: Apache-2.0
"""Codes that cannot be decoded, and what their owners are told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blockwave.arrays import MAX_FILE_BYTES
from tests.cli import inputs
from tests.cli.bad import Bad

SPECIAL = "special ids of qwen2.5-omni: [8292, 8293, 8294, 8296]; check that the codes were made for this checkpoint"
CONVERT = "convert them where they are made"


def codes(name: str, content: bytes | Callable[[], bytes], message: str, code: int = 3) -> Bad:
    """A bad file of codes."""
    return Bad(f"speak {name} -o out.wav --model model", code, f"{name}: {message}", {name: content})


CODES = {
    "missing": Bad("speak no.json -o out.wav --model model", 3, "no.json: no such file; expected speech codes"),
    "folder": Bad(
        "speak model/.json -o out.wav",
        3,
        "model/.json: got suffix '', expected one of .json, .npy, .npz, .txt, .safetensors",
    ),
    "empty file": codes("x.json", b"", "got an empty file, expected speech codes"),
    "blank file": codes("x.json", b" \n\t ", "got nothing, expected speech codes"),
    "comment": codes("x.json", b"// codes", "got '//' as item 0, expected an integer"),
    "cut json": codes("x.json", b"[1, 2", "broken JSON (Expecting ',' delimiter: line 1 column 6 (char 5))"),
    "deep json": codes("x.json", b"[" * 200_000, "broken JSON (nested too deeply)"),
    "floats": codes("x.json", b"[1.5, 2]", f"got float64 values, expected integers; {CONVERT}"),
    "whole floats": codes("x.json", b"[1.0, 2.0]", f"got float64 values, expected integers; {CONVERT}"),
    "nan": codes("x.json", b"[NaN]", f"got float64 values, expected integers; {CONVERT}"),
    "booleans": codes("x.json", b"[true, false]", f"got bool values, expected integers; {CONVERT}"),
    "texts": codes("x.json", b'["1", "2"]', f"got <U1 values, expected integers; {CONVERT}"),
    "nulls": codes("x.json", b"[1, null]", f"got mixed values, expected integers; {CONVERT}"),
    "ragged": codes(
        "x.json",
        b"[[1, 2], [3]]",
        "got rows of unequal length or mixed nesting, expected [N] or [B, N]; pass unequal sequences as a list of "
        "sequences",
    ),
    "several": codes("x.json", b"[[1, 2], [3, 4]]", "got 2 sequences, expected one; write a file for each"),
    "3-D": codes(
        "x.json",
        b"[[[1], [2]]]",
        "got shape [1, 2, 1], expected [N] or [B, N]; codes of several codebooks per step (12 Hz codecs) belong to "
        "another decoder",
    ),
    "huge": codes(
        "x.json",
        b"[1, 1000000000000000000000]",
        "got values from 1 to 1000000000000000000000, which do not fit into 64 bits; expected code ids",
    ),
    "no codes": codes(
        "x.json", b'{"tokens": [1]}', "got an object with ['tokens'], expected one with codes, or a bare list"
    ),
    "codes null": codes("x.json", b'{"codes": null}', f"got mixed values, expected integers; {CONVERT}"),
    "codes text": codes(
        "x.json", b'{"codes": "1 2"}', "got text, expected integers; parse the text first, e.g. with json.loads"
    ),
    "empty list": codes("x.json", b"[]", "got an empty sequence, expected at least one code"),
    "negative": codes("x.json", b"[5, -1]", f"got id -1 at position 1, expected 0..8193; {SPECIAL}"),
    "too high": codes("x.json", b"[5, 6, 9000]", f"got id 9000 at position 2, expected 0..8193; {SPECIAL}"),
    "several bad": codes(
        "x.json", b"[9000, -5]", f"got id 9000 at position 0, expected 0..8193 (2 such ids in all); {SPECIAL}"
    ),
    "pad inside": codes("x.json", b"[5, 8296, 6]", f"got id 8296 at position 1, expected 0..8193; {SPECIAL}"),
    "begin twice": codes("x.json", b"[8293, 8293, 6]", f"got id 8293 at position 1, expected 0..8193; {SPECIAL}"),
    "only special": codes(
        "x.json",
        b"[8293, 8294, 8292]",
        "nothing left of 3 ids after removing the special ids of qwen2.5-omni, expected at least one speech code",
    ),
    "after the end": codes(
        "x.json",
        b"[5, 8294, 6]",
        "got id 6 at position 2, after the end id 8294 at position 1; expected only special ids of qwen2.5-omni "
        "there; cut the sequence where it ends",
    ),
    "too long": codes(
        "x.txt",
        b"5 " * 16385,
        "got 16385 codes = 32770 mel frames, expected at most max_position_embeddings = 32768 frames; set "
        "max_duration_s, or ask for any length",
    ),
    "family": codes(
        "x.json",
        inputs.js({"codes": [5], "family": "other"}),
        "got codes of family 'other', expected 'qwen2.5-omni' as the checkpoint's; the same numbers mean other "
        "sounds there; use the checkpoint that these codes were made for",
    ),
    "rate": codes(
        "x.json",
        inputs.js({"codes": [5], "rate": 25}),
        "got codes of rate 25, expected 50.0 as the checkpoint's; the same numbers mean other sounds there; use the "
        "checkpoint that these codes were made for",
    ),
    "family a number": codes("x.json", b'{"codes": [5], "family": 7}', "got family 7, expected text or null"),
    "rate a text": codes(
        "x.json", b'{"codes": [5], "rate": "50"}', "got rate '50', expected codes per second as a number, or null"
    ),
    "word": codes("x.txt", b"1, 2, three", "got 'three' as item 2, expected an integer"),
    "decimal": codes("x.txt", b"1 2.0", "got '2.0' as item 1, expected an integer"),
    "latin-1": codes("x.txt", b"1 2 \xe9", "got bytes that are no UTF-8 text (at byte 4), expected text"),
    "sound": codes("x.txt", b"RIFF\x00\x00", "got 'RIFF\\x00\\x00' as item 0, expected an integer"),
    "enormous file": codes(
        "x.json",
        lambda: bytes(MAX_FILE_BYTES + 1),
        f"got {MAX_FILE_BYTES + 1} bytes, expected speech codes of at most {MAX_FILE_BYTES}; is it another file?",
    ),
    "npy text": codes("x.npy", b"[1, 2]", "not a npy file (...)"),
    "npy floats": codes("x.npy", inputs.npy([1.0]), f"got float64 values, expected integers; {CONVERT}"),
    "npy scalar": codes("x.npy", inputs.npy(5), "got shape [], expected [N] or [B, N]; wrap a single code in a list"),
    "npy 3-D": codes(
        "x.npy",
        inputs.npy(np.ones((2, 3, 4), int)),
        "got shape [2, 3, 4], expected [N] or [B, N]; codes of several codebooks per step (12 Hz codecs) belong to "
        "another decoder",
    ),
    "npy objects": codes(
        "x.npy",
        inputs.harmful_npy(),
        "refused, the array holds pickled objects, which may run code; expected plain numbers",
    ),
    "npy cut": codes("x.npy", inputs.npy([1, 2, 3])[:-8], "got 16 bytes for an array of 24; the file is cut short"),
    "npy promise": codes(
        "x.npy", inputs.npy_header((10**9, 10**9)), f"got 16 bytes for an array of {8 * 10**18}; the file is cut short"
    ),
    "npy unsigned": codes(
        "x.npy",
        inputs.npy([2**64 - 1], dtype=np.uint64),
        "got value 18446744073709551615, which does not fit into 64 bits; expected code ids",
    ),
    "npy records": codes(
        "x.npy", inputs.npy([(1,)], dtype=[("a", "<i8")]), f"got [('a', '<i8')] values, expected integers; {CONVERT}"
    ),
    "npz no zip": codes("x.npz", b"PK nothing", "not a npz file (File is not a zip file)"),
    "npz two": codes("x.npz", inputs.npz(a=[1], b=[2]), "got arrays ['a', 'b'], expected one named codes, or only one"),
    "npz none": codes("x.npz", inputs.npz(), "got arrays [], expected one named codes, or only one"),
    "npz bomb": codes(
        "x.npz",
        lambda: inputs.zip_bomb(MAX_FILE_BYTES + 1),
        f"got {MAX_FILE_BYTES + 1} bytes unpacked, expected at most {MAX_FILE_BYTES}",
    ),
    "tensors cut": codes(
        "x.safetensors", inputs.tensors(codes=[1, 2])[:-4], "not a safetensors file (...); expected speech codes"
    ),
    "tensors floats": codes(
        "x.safetensors", inputs.tensors(codes=np.ones(3, np.float32)), f"got F32 values, expected integers; {CONVERT}"
    ),
    "tensors two": codes(
        "x.safetensors", inputs.tensors(a=[1], b=[2]), "got arrays ['a', 'b'], expected one named codes, or only one"
    ),
    "tensors rate": codes(
        "x.safetensors",
        inputs.tensors({"rate": "fast"}, codes=[1]),
        "got rate 'fast', expected codes per second as a number",
    ),
    "suffix": codes("x.csv", b"1,2", "got suffix '.csv', expected one of .json, .npy, .npz, .txt, .safetensors"),
    "stdin empty": Bad("speak - -o out.wav --model model", 3, "standard input: got nothing, expected speech codes"),
    "stdin words": Bad(
        "speak - -o out.wav --model model",
        3,
        "standard input: got 'hello' as item 0, expected an integer",
        stdin=b"hello",
    ),
    "stdin high": Bad(
        "speak - -o - --model model",
        3,
        f"standard input: got id 8500 at position 0, expected 0..8193; {SPECIAL}",
        stdin=b"8500",
    ),
}
