# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures and writes the tables of docs/streaming.md from the benchmark's JSON.

python -m benchmarks.streaming.page [--json PATH]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import machine
from benchmarks.streaming import plots, tables
from blockwave.voice import write_atomically

DOCS = Path(__file__).parents[2] / "docs"
PAGE, IMAGES = DOCS / "streaming.md", DOCS / "images"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=machine.RESULTS / "streaming.json")
    results = json.loads(parser.parse_args().json.read_text(encoding="utf-8"))
    for path in plots.draw_all(results, IMAGES):
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
    write_atomically(PAGE, tables.with_tables(PAGE.read_text(encoding="utf-8"), results).encode())
    print(PAGE)


if __name__ == "__main__":
    main()
