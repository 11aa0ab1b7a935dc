# SPDX-License-Identifier: Apache-2.0
"""Streaming and throughput, section by section, into one JSON.

    python -m benchmarks.streaming [SECTION ...] [--quick] [--threads 2] [--checkpoint DIR]

A section that is run replaces its old self in the JSON, the others stay; each carries the machine it was run on.
``--quick`` shows in a minute or two that everything runs; its numbers say nothing, and it writes to another file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine
from benchmarks.streaming import first_audio, late_joiner, look_ahead, playback, throughput

JSON = machine.RESULTS / "streaming.json"
QUICK_JSON = Path("build") / "streaming-quick.json"


def main() -> None:
    sections: dict[str, Callable[..., dict[str, Any]]] = {
        "look-ahead": look_ahead.embedded,
        "look-ahead-released": look_ahead.released,
        "first-audio": first_audio.measure,
        "playback": playback.measure,
        "throughput": throughput.measure,
        "late-joiner": late_joiner.measure,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of {', '.join(sections)}; default all")
    parser.add_argument("--quick", action="store_true", help="smallest sizes; writes build/streaming-quick.json")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--checkpoint", type=Path, help="checkpoint of the released size; default a random one, made anew"
    )
    parser.add_argument("--out", type=Path, help="JSON that sections are written into")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(sections):
        parser.error(f"sections: got {', '.join(sorted(unknown))}, expected some of {', '.join(sections)}")
    torch.set_num_threads(arguments.threads)
    sections["look-ahead-released"] = partial(look_ahead.released, checkpoint=arguments.checkpoint)
    path = arguments.out or (QUICK_JSON if arguments.quick else JSON)
    for name in arguments.sections or sections:
        print(name, flush=True)
        described, started_s = machine.describe(), time.perf_counter()
        content = sections[name](quick=arguments.quick)
        took_s = round(time.perf_counter() - started_s, 1)
        results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        results[name] = {"quick": arguments.quick, "took_s": took_s, "machine": described} | content
        in_order = {known: results[known] for known in sections if known in results}
        print(f"  {took_s:.0f} s -> {machine.write_json(path, in_order)}", flush=True)


if __name__ == "__main__":
    main()
