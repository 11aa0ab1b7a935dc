# SPDX-License-Identifier: Apache-2.0
"""One evaluation of the velocity with guidance, at the released size, against every public form in one run.

    python -m benchmarks.evaluation [--size full] [--frames 480 960 2000 4000] [--device cpu] [--threads 2]

Contestants, interleaved: this engine; transformers (dense mask, dense attention); the published blocked form; and the
floor, the layers' matrix products alone. The speed stands beside the difference in output, relative to transformers'
largest value; a run whose difference exceeds 1e-5 reports no ratio and fails.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from benchmarks import blocked_form, machine
from benchmarks.measure import interleaved
from blockwave import Token2Wav
from blockwave.integrations.reference import load_reference
from blockwave.mel.noise import seeded_noise
from blockwave.velocity import DiT, PackedConditions
from blockwave.weights.make import make_checkpoint

BOUND = 1e-5
GUIDANCE = 0.5
TIME = 0.3
MAX_REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="full", choices=["tiny", "small", "full"])
    parser.add_argument("--frames", type=int, nargs="+", default=[480, 960, 2000, 4000])
    parser.add_argument("--repeats", type=int, default=3, help="rounds at the longest; shorter ones get up to 5")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--name", help="name of the JSON; default evaluation-SIZE-DEVICE")
    parser.add_argument("--checkpoint", type=Path, help="folder; default a random one made for the run")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.checkpoint or make_checkpoint(Path(scratch) / "checkpoint", arguments.size)
        rows = run(folder, arguments.device, arguments.frames, arguments.repeats)
    content = {
        "what": "one velocity evaluation with guidance (both branches), random weights",
        "size": arguments.size,
        "device": arguments.device,
        "dtype": "float32",
        "machine": machine.describe(),
        "rows": rows,
    }
    print(machine.write(arguments.name or f"evaluation-{arguments.size}-{arguments.device}", content))


@torch.inference_mode()
def run(folder: Path, device: str, lengths: list[int], repeats: int) -> list[dict[str, Any]]:
    """One row per length."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = Token2Wav.from_pretrained(folder, device=device)
    peer = load_reference(folder).code2wav_dit_model.to(device)
    # The peer's weights are still mapped from the file: read them now, or they count as memory of its first evaluation.
    for parameter in peer.parameters():
        parameter.data = parameter.data.clone()
    rows = []
    for frames in lengths:
        rounds = min(MAX_REPEATS, round(repeats * (max(lengths) / frames) ** 0.5))
        rows.append(measure_length(model, peer, frames, rounds))
    return rows


def measure_length(model: Token2Wav, peer: Any, frames: int, repeats: int) -> dict[str, Any]:
    """All contestants at one length."""
    dit, device = model.engine.dit, model.engine.device
    rng = np.random.default_rng(0)
    codes = torch.from_numpy(rng.integers(1, dit.config.num_embeds, frames // dit.config.repeats)).to(device)
    voice = model.voice()
    xvector, reference = (torch.tensor(a, device=device) for a in (voice.xvector, voice.reference_mel))
    x = seeded_noise(0, frames, dit.config.mel_dim).to(device)
    batch = dit.pack([dit.condition(codes, dit.voice_rows(xvector, reference), GUIDANCE)])
    grid = dit.time_grid([TIME])
    time = torch.tensor(TIME, device=device)

    def ours() -> Tensor:
        return dit(x, batch, grid, 0)

    def dense() -> Tensor:
        speaker = xvector[None, None].expand(1, frames, -1)
        both = peer(x[None], reference[None], speaker, codes[None], time, apply_cfg=True)
        return both[0] + (both[0] - both[1]) * GUIDANCE

    def blocked() -> Tensor:
        both = blocked_form.evaluate(peer, x[None], codes[None], reference[None], xvector[None], time)
        return both[0] + (both[0] - both[1]) * GUIDANCE

    floor = matrix_products(dit, batch)
    series = interleaved({"blockwave": ours, "dense": dense, "blocked": blocked, "floor": floor}, repeats)
    expected = series["dense"].output
    assert expected is not None
    largest = expected.abs().max()
    row: dict[str, Any] = {"frames": frames, "repeats": repeats}
    for name, one in series.items():
        row[name] = {
            "median_s": round(one.median_s, 4),
            "seconds": [round(s, 4) for s in one.seconds],
            "extra_peak_mib": round(one.extra_peak_mib, 1),
        }
        if name != "floor":
            row[name]["max_difference"] = float((one.output - expected).abs().max() / largest)
    if row["blockwave"]["max_difference"] > BOUND or row["blocked"]["max_difference"] > BOUND:
        raise SystemExit(f"{frames} frames: outputs differ by more than {BOUND}, no ratio is reported: {row}")
    ours_s = series["blockwave"].median_s
    row["ratio"] = {name: round(series[name].median_s / ours_s, 3) for name in ("dense", "blocked", "floor")}
    ratio = row["ratio"]
    memory = ", ".join(f"{name} {row[name]['extra_peak_mib']:.0f}" for name in ("blockwave", "dense", "blocked"))
    print(
        f"{frames} frames: blockwave {ours_s:.3f} s; {ratio['dense']}x over dense, {ratio['blocked']}x over blocked, "
        f"floor {ratio['floor']} of its time; extra peak MiB: {memory}; "
        f"difference {row['blockwave']['max_difference']:.1e}",
        flush=True,
    )
    return row


def matrix_products(dit: DiT, batch: PackedConditions) -> Any:
    """The layers' products on inputs of the right shapes, writing into buffers that exist."""
    frames, device = batch.layout.table.num_frames, batch.constants.device
    widths = {m.in_features for layer in dit.layers for m in layer.products()}
    inputs = {width: torch.randn(frames, width, device=device) for width in widths}

    def run() -> Tensor:
        out = inputs[dit.config.hidden_size]
        for layer in dit.layers:
            for product in layer.products():
                out = linear(inputs[product.in_features], product.weight, product.bias)
        return out

    return run


if __name__ == "__main__":
    main()
