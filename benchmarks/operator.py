# SPDX-License-Identifier: Apache-2.0
"""Block attention beside every public form of it, in one interleaved run: one layer's attention at the released size.

    python -m benchmarks.operator [--frames 24 120 480 960 2000 4000 8000] [--batch 1 8] [--threads 2]

Queries, keys and values lie as the host's projections leave them: one fused tensor [F, 3, H, D] for this engine, three
tensors [B, n, H D] for the others. Everybody returns frames of H D, as the output projection reads them. Rotary
positions are left out for all.

    transformers   its mask of all heads, compared anew in every layer, and dense attention
    one_mask       dense attention with one mask (1, 1, n, n) that exists before
    blocked        the published block-sparse form (benchmarks/blocked_form.py)
    flex           torch's FlexAttention, compiled, with a BlockMask that exists before; its largest tile is the block
    local          the package local-attention, given its mask (without one its last partial block is wrong)
    blockwave      this engine

A row whose output differs from float64's by more than 1e-5 of the largest value has no time. Dense forms stop where
they would take more than ``--dense-gib`` for a mask; a row that was left out says so.
"""

from __future__ import annotations

import argparse
import math
import statistics
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks import blocked_form, machine
from benchmarks.measure import Run, interleaved
from blockwave.blocks import BlockTable
from blockwave.ops.block_attention import BlockLayout, block_attention

BLOCK, HEADS, HEAD_DIM = 24, 16, 64
REACHES = {"own block": (0, 0), "one block back": (1, 0)}
BOUND = 1e-5
LONG_S = 30.0  # rows that take longer than this in all are measured 3 times, others 9 times
PEERS = ("transformers", "one_mask", "blocked", "flex", "local")


class Layer:
    """Inputs of one layer's attention and its contestants, each a callable that returns [B, n, H D]."""

    def __init__(self, batch: int, frames: int, back: int, ahead: int) -> None:
        self.batch, self.frames, self.back, self.ahead = batch, frames, back, ahead
        generator = torch.Generator().manual_seed(frames)
        self.fused = torch.randn(batch * frames, 3, HEADS, HEAD_DIM, generator=generator)
        apart = self.fused.unflatten(0, (batch, frames)).unbind(2)
        self.heads = [x.flatten(2).contiguous().unflatten(2, (HEADS, HEAD_DIM)).transpose(1, 2) for x in apart]
        block = torch.arange(frames) // BLOCK
        self.difference = block[None] - block[:, None]
        self.mask = (self.difference >= -back) & (self.difference <= ahead)

    def blockwave(self) -> Run:
        table = BlockTable.from_lengths([self.frames] * self.batch, BLOCK)
        layout = BlockLayout(table, torch.device("cpu"))
        packed = self.fused.index_select(0, self.order(table))  # done once for all layers and evaluations

        def run() -> Tensor:
            q, k, v = packed.unbind(1)
            return block_attention(q, k, v, layout, self.back, self.ahead).flatten(1)

        return run

    def order(self, table: BlockTable) -> Tensor:
        """int64 [F], the place of every packed frame among those of the batch."""
        return torch.from_numpy(table.frame_sequence * self.frames + table.frame_position)

    def unpacked(self, out: Tensor) -> Tensor:
        """What blockwave returns, [F, H D] in packed order, as [B, n, H D]."""
        table = BlockTable.from_lengths([self.frames] * self.batch, BLOCK)
        return out.index_select(0, self.order(table).argsort()).unflatten(0, (self.batch, self.frames))

    def transformers(self) -> Run:
        expanded = self.difference.expand(self.batch, HEADS, self.frames, self.frames)

        def run() -> Tensor:
            mask = (expanded >= -float(self.back)) & (expanded <= float(self.ahead))
            return joined(scaled_dot_product_attention(*self.heads, attn_mask=mask))

        return run

    def one_mask(self) -> Run:
        mask = self.mask[None, None]
        return lambda: joined(scaled_dot_product_attention(*self.heads, attn_mask=mask))

    def blocked(self) -> Run:
        reach, count = (self.back, self.ahead), -(-self.frames // BLOCK)
        room = count * BLOCK - self.frames
        q, k, v = (torch.nn.functional.pad(x, (0, 0, 0, room)).transpose(1, 2).contiguous() for x in self.heads)
        real = (torch.arange(count * BLOCK) < self.frames).view(1, 1, count, BLOCK, 1)
        mask = blocked_form.with_neighbours(real, *reach).transpose(-1, -2)

        def run() -> Tensor:
            heads = [x.transpose(1, 2) for x in (q, k, v)]
            out = blocked_form.attend(*heads, (count, BLOCK), reach, mask)
            return out[:, : self.frames]

        return run

    def flex(self) -> Run:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        def inside(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            difference = j // BLOCK - i // BLOCK
            return (difference >= -self.back) & (difference <= self.ahead)

        mask = create_block_mask(inside, None, None, self.frames, self.frames, "cpu")
        compiled = torch.compile(flex_attention, dynamic=False)
        return lambda: joined(compiled(*self.heads, block_mask=mask))

    def local(self) -> Run:
        from local_attention import LocalAttention

        attention = LocalAttention(
            BLOCK, look_backward=self.back, look_forward=self.ahead, autopad=True, use_rotary_pos_emb=False
        )
        mask = torch.ones(self.batch, self.frames, dtype=torch.bool)
        return lambda: joined(attention(*self.heads, mask=mask))

    def expected(self) -> Tensor:
        """Block by block in float64."""
        q, k, v = (x.double() for x in self.heads)
        out = []
        for start in range(0, self.frames, BLOCK):
            seen = slice(max(start - self.back * BLOCK, 0), start + (1 + self.ahead) * BLOCK)
            here = slice(start, start + BLOCK)
            weights = (q[:, :, here] @ k[:, :, seen].transpose(-1, -2) / math.sqrt(HEAD_DIM)).softmax(-1)
            out.append(weights @ v[:, :, seen])
        return joined(torch.cat(out, 2))


def joined(x: Tensor) -> Tensor:
    """[B, H, n, D] -> [B, n, H D], as the output projection wants it."""
    return x.transpose(1, 2).flatten(2)


@torch.inference_mode()
def measure(batch: int, frames: int, reach: str, dense_gib: float) -> dict[str, Any]:
    """All contestants at one size; times in milliseconds."""
    layer = Layer(batch, frames, *REACHES[reach])
    row: dict[str, Any] = {"reach": reach, "batch": batch, "frames": frames}
    runs: dict[str, Run] = {"blockwave": layer.blockwave()}
    for name in PEERS:
        why = left_out(name, batch, frames, dense_gib)
        if why:
            row[name] = {"left_out": why}
            continue
        try:
            runs[name] = getattr(layer, name)()
            runs[name]()
        except Exception as error:  # a peer that cannot compute a size is a finding, not the end of the run
            runs.pop(name, None)
            row[name] = {"left_out": f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"}
    expected = layer.expected()
    once = sum(one.median_s for one in interleaved(runs, 1, warmups=0).values())
    repeats = 9 if once * 9 < LONG_S else 3
    series = interleaved(runs, repeats, warmups=1)
    largest = expected.abs().max()
    for name, one in series.items():
        assert one.output is not None
        output = layer.unpacked(one.output) if name == "blockwave" else one.output
        difference = float((output.double() - expected).abs().max() / largest)
        quarters = statistics.quantiles(one.seconds, n=4, method="inclusive")
        row[name] = {"max_difference": difference, "extra_peak_mib": round(one.extra_peak_mib, 1)}
        if difference <= BOUND:
            row[name] |= dict(zip(("q1_ms", "median_ms", "q3_ms"), (round(1e3 * q, 3) for q in quarters), strict=True))
    row["repeats"] = repeats
    if "median_ms" not in row["blockwave"]:
        raise SystemExit(f"blockwave differs from float64 by {row['blockwave']}: no row is reported")
    ours = row["blockwave"]["median_ms"]
    row["ratio"] = {name: round(row[name]["median_ms"] / ours, 2) for name in PEERS if "median_ms" in row[name]}
    told = ", ".join(f"{name} {ratio}x" for name, ratio in row["ratio"].items())
    print(f"{reach}, batch {batch}, {frames} frames: {ours:.2f} ms; {told}", flush=True)
    return row


def left_out(name: str, batch: int, frames: int, dense_gib: float) -> str | None:
    """Why a contestant is not measured: the bytes of its mask, one per pair of frames."""
    masks = {"transformers": batch * HEADS, "one_mask": 1}
    gib = masks.get(name, 0) * frames**2 / 2**30
    return f"a mask of {gib:.1f} GiB" if gib > dense_gib else None


def exponents(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Slope of log time over log frames from 960 frames on, batch 1, least squares."""
    out: dict[str, dict[str, float]] = {}
    for reach in REACHES:
        out[reach] = {}
        for name in (*PEERS, "blockwave"):
            points = [
                (math.log(row["frames"]), math.log(row[name]["median_ms"]))
                for row in rows
                if row["reach"] == reach and row["batch"] == 1 and row["frames"] >= 960 and "median_ms" in row[name]
            ]
            if len(points) > 1:
                slope = statistics.linear_regression(*zip(*points, strict=True)).slope
                out[reach][name] = round(slope, 3)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, nargs="+", default=[24, 120, 480, 960, 2000, 4000, 8000])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dense-gib", type=float, default=2.0)
    parser.add_argument("--name", default="operator-cpu", help="name of the JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch._dynamo.config.cache_size_limit = 64  # FlexAttention is compiled for every size
    rows = [
        measure(batch, frames, reach, arguments.dense_gib)
        for reach in REACHES
        for batch in arguments.batch
        for frames in arguments.frames
    ]
    content = {
        "what": "attention of one layer, 16 heads of 64, blocks of 24 frames, float32, against float64",
        "machine": machine.describe(),
        "exponents": exponents(rows),
        "rows": rows,
    }
    print(machine.write(arguments.name, content), content["exponents"])


if __name__ == "__main__":
    main()
