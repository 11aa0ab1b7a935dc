# SPDX-License-Identifier: Apache-2.0
"""One stream, minute after minute, measured in a process of its own: ``hour.py CHECKPOINT MINUTES SEED FOLDER``.

Writes float32 files with the first and the last minute's mel and samples, and prints JSON: totals, and of every minute
the highest memory (bytes), the processor's time (s), the batches, and how many tensors live at its end and how many
bytes they hold.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from blockwave import Token2Wav
from tests.held import tensor_bytes

MINUTE = 3000  # codes
# Pieces of very unequal length; within a minute they begin anew, so minutes are alike.
PIECES = (0, 1, 600, 50, 1200, 0, 13, 900)


def hour_codes(minutes: int) -> np.ndarray:
    """The codes of the test, int64 [3000 minutes]."""
    return np.random.default_rng(0).integers(1, 8194, minutes * MINUTE)


def reset_peak() -> None:
    """Linux: 5 resets the highest memory (man 5 proc, clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The highest resident memory since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


class Minute:
    """Writes what belongs to one minute of a stream to a file."""

    def __init__(self, path: Path, minute: int, per_minute: int) -> None:
        self.file, self.start, self.stop = path.open("wb"), minute * per_minute, (minute + 1) * per_minute

    def write(self, part: np.ndarray, first: int) -> None:
        """``part`` begins at ``first``, counted in what the stream gives."""
        span = slice(max(0, self.start - first), max(0, self.stop - first))
        self.file.write(np.ascontiguousarray(part[span]).data)
        self.file.flush()


def main(checkpoint: str, minutes: int, seed: int, folder: str) -> None:
    torch.set_num_threads(1)
    model = Token2Wav.from_pretrained(checkpoint)
    codes, last = hour_codes(minutes), minutes - 1
    mels = [Minute(Path(folder, f"{place}.mel"), at, 2 * MINUTE) for place, at in (("first", 0), ("last", last))]
    waves = [Minute(Path(folder, f"{place}.wave"), at, 480 * MINUTE) for place, at in (("first", 0), ("last", last))]
    stream = model.stream(seed=seed, look_ahead="exact", any_length=True)
    counters = model.engine.scheduler.counters
    num_frames = num_samples = 0
    rows = []
    for minute in range(minutes):
        reset_peak()
        started_s, batches = time.process_time(), counters.batches
        position, end = minute * MINUTE, (minute + 1) * MINUTE
        for piece in itertools.cycle(PIECES):
            stop = min(end, position + piece)
            sound = stream.feed(codes[position:stop])
            position = stop
            for chunk in itertools.chain(sound, stream.finish() if stop == len(codes) else ()):
                assert chunk.first_sample == num_samples
                for mel, wave in zip(mels, waves, strict=True):
                    mel.write(chunk.mel, num_frames)
                    wave.write(chunk.samples, num_samples)
                num_frames += len(chunk.mel)
                num_samples += len(chunk.samples)
            if position == end:
                break
        spent_s, peak = time.process_time() - started_s, peak_bytes()
        del sound, chunk
        count, held = tensor_bytes()
        rows.append((peak, spent_s, counters.batches - batches, count, held))
        print(*rows[-1], file=sys.stderr, flush=True)
    totals = {"frames": num_frames, "samples": num_samples, "evaluated_blocks": stream.evaluated_blocks}
    names = ("peak_bytes", "cpu_s", "batches", "tensors", "tensor_bytes")
    print(json.dumps(totals | dict(zip(names, zip(*rows, strict=True), strict=True))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
