# SPDX-License-Identifier: Apache-2.0
"""Trains the DiT by conditional flow matching: noise at t = 0, log-mel at t = 1, velocity mel - noise. Stops, resumes.

python train_flow.py --data data --codebook runs/codebook.safetensors --run runs/flow --minutes 120
"""

from __future__ import annotations

import argparse
import csv
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import settings
import torch
from corpus import Corpus, codes_of
from torch import Tensor, nn

from blockwave import Token2Wav
from blockwave.config import Token2WavConfig
from blockwave.encoder.codebook import Codebook
from blockwave.velocity import DiT


def make() -> DiT:
    return DiT(Token2WavConfig.from_dict(settings.config_json(settings.bigvgan())).dit)


@torch.no_grad()
def initialise(dit: DiT, centroids: Tensor, mean: Tensor) -> None:
    """AdaLN-Zero, an output that starts as the mean mel, and code embeddings that know the centroids.

    AdaLN-Zero: Peebles and Xie, 2023, arXiv 2212.09748, section 3.2. The embedding of a code is its centroid's
    principal components, so that codes that sound alike begin alike.
    """
    for name, module in dit.named_modules():
        if isinstance(module, nn.Linear) and name.startswith(("layers", "input")):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    for module in (*(layer.modulation for layer in dit.layers), dit.final_modulation, dit.final):
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)
    dit.final.bias.copy_(mean)
    centred = centroids - centroids.mean(0)
    basis = torch.linalg.svd(centred, full_matrices=False).Vh[: settings.DIT["emb_dim"]]
    projected = centred @ basis.T
    dit.code_embedding.weight.zero_()
    scale = (projected.std(0) * projected.std() ** 0.5).clamp_min(0.3).sqrt()
    dit.code_embedding.weight[1:] = projected / scale


@dataclass(frozen=True)
class Batch:
    """mel [B, T, 80], codes [B, T / 2], reference [B, R, 80], x-vector [B, 192]; zeros where conditions are dropped."""

    mel: Tensor
    codes: Tensor
    reference: Tensor
    xvector: Tensor


class Batches:
    """Random windows with their codes, a reference mel of another sentence, and joint condition dropout."""

    def __init__(
        self, speakers: dict[str, Corpus], batch: int, frames: int, drop: float, seed: int | tuple[int, int]
    ) -> None:
        self.batch, self.frames, self.drop = batch, frames, drop
        self.rng = np.random.default_rng(seed)
        self.speakers = list(speakers.values())
        self.codes = [codes_of(corpus) for corpus in self.speakers]
        rooms = [np.maximum(c.frames - frames, 0) // 2 + (c.frames >= frames) for c in self.speakers]
        self.weights = [room / room.sum() for room in rooms]
        vectors = settings.xvectors(settings.SPEAKERS)
        self.xvectors = torch.stack([vectors[name] for name in speakers])

    def reference(self, corpus: Corpus) -> np.ndarray:
        length = settings.REFERENCE_FRAMES
        while True:
            i = self.rng.integers(len(corpus))
            if corpus.frames[i] >= length:
                return corpus.mel(i, int(self.rng.integers(0, corpus.frames[i] - length + 1)), length)

    def draw(self) -> Batch:
        mels, codes, references = [], [], []
        who = self.rng.integers(len(self.speakers), size=self.batch)
        for speaker in who:
            corpus, weight = self.speakers[speaker], self.weights[speaker]
            i = self.rng.choice(len(weight), p=weight)
            start = 2 * int(self.rng.integers(0, (corpus.frames[i] - self.frames) // 2 + 1))
            mels.append(corpus.mel(i, start, self.frames))
            begin = (corpus.first[i] + start) // 2
            codes.append(self.codes[speaker][begin : begin + self.frames // 2].astype(np.int64))
            references.append(self.reference(corpus))
        keep = torch.from_numpy(self.rng.random(self.batch) >= self.drop)
        mel, code, reference = (torch.from_numpy(np.stack(x)) for x in (mels, codes, references))
        xvector = self.xvectors[torch.from_numpy(who)] * keep[:, None]
        return Batch(mel, code * keep[:, None], reference * keep[:, None, None], xvector)


def velocity_loss(dit: DiT, batch: Batch, noise: Tensor, t: Tensor) -> Tensor:
    """Mean square of the error: Lipman et al., 2023, arXiv 2210.02747, equation 23 with sigma_min = 0."""
    mel = batch.mel
    x = noise + t[:, None, None] * (mel - noise)
    conditions = [
        dit.condition(codes, dit.voice_rows(xvector, reference), guidance=0.0)
        for codes, xvector, reference in zip(batch.codes, batch.xvector, batch.reference, strict=True)
    ]
    packed, grid = dit.pack(conditions), dit.time_grid(t.tolist())
    # Windows are whole blocks and equally long: a block's place in the packed order does not change within a window.
    rows = torch.arange(len(t)).repeat_interleave(mel.shape[1])[packed.x_of]
    out = dit.branches(x.flatten(0, 1), packed, grid, rows)
    target = (mel - noise).flatten(0, 1).index_select(0, packed.x_of)
    return ((out - target) ** 2).mean()


@torch.no_grad()
def validate(dit: DiT, batches: list[Batch], seed: int = 1234) -> float:
    generator, total = torch.Generator().manual_seed(seed), 0.0
    for batch in batches:
        noise = torch.randn(batch.mel.shape, generator=generator)
        t = (torch.arange(len(noise)) + 0.5) / len(noise)
        total += float(velocity_loss(dit, batch, noise, t))
    return total / len(batches)


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default="data")
    p.add_argument("--speakers", nargs="+", default=settings.SPEAKERS, help="equally often")
    p.add_argument("--codebook", type=Path, default=Path("runs/codebook.safetensors"))
    p.add_argument("--run", type=Path, default=Path("runs/flow"))
    p.add_argument("--from-voice", type=Path, help="begin with the weights of a finished voice, same codebook")
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--frames", type=int, default=240, help="whole blocks of 24")
    p.add_argument("--drop", type=float, default=0.2)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--warmup", type=int, default=200)
    p.add_argument("--halve-every", type=float, default=8000, help="steps in which the learning rate halves")
    p.add_argument("--ema", type=float, default=0.999)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class Run:
    """Network, average, optimiser, and the place where they are kept."""

    def __init__(self, a: argparse.Namespace, mean: Tensor) -> None:
        torch.manual_seed(a.seed)
        self.dit, self.ema = make(), make().eval()
        self.opt = torch.optim.AdamW(self.dit.parameters(), a.lr, betas=(0.9, 0.98), weight_decay=0.01)
        self.parts = {"dit": self.dit, "ema": self.ema, "opt": self.opt}
        self.step, self.seconds, self.last = 0, 0.0, a.run / "last.pt"
        if self.last.exists():
            state = torch.load(self.last, weights_only=True)
            for name, part in self.parts.items():
                part.load_state_dict(state[name])
            self.step, self.seconds = state["step"], state["seconds"]
            return
        if a.from_voice:
            self.dit.load_state_dict(Token2Wav.from_pretrained(a.from_voice).engine.dit.state_dict())
        else:
            centroids = torch.from_numpy(Codebook.load(a.codebook).centroids).float()
            initialise(self.dit, centroids, mean)
        self.ema.load_state_dict(self.dit.state_dict())

    def save(self, done: float) -> None:
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**state, "step": self.step, "seconds": self.seconds + done}, self.last.with_suffix(".tmp"))
        self.last.with_suffix(".tmp").replace(self.last)


def main() -> None:
    a = options()
    torch.set_num_threads(a.threads)
    a.run.mkdir(parents=True, exist_ok=True)
    train, test = (
        {name: Corpus(settings.data_of(a.data, name), part) for name in a.speakers} for part in ("train", "test")
    )
    mean = np.mean([np.asarray(corpus.all_mel[::50], np.float32).mean(0) for corpus in train.values()], 0)
    run = Run(a, torch.from_numpy(mean))
    batches = Batches(train, a.batch, a.frames, a.drop, (a.seed, run.step))
    held_out = Batches(test, 16, 120, 0.0, 7)
    held_out = [held_out.draw() for _ in range(2)]
    print(f"step {run.step}, {sum(x.numel() for x in run.dit.parameters()) / 1e6:.2f} M", flush=True)
    table = a.run / "loss.csv"
    new = not table.exists()
    log = csv.writer(table.open("a", buffering=1), lineterminator="\n")
    if new:
        log.writerow("step cpu_seconds lr flow_loss grad_norm held_out_flow_loss".split())
    started, saved, sums, count = time.time(), time.time(), np.zeros(2), 0
    asked_to_stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.set())
    while time.time() - started < a.minutes * 60 and not asked_to_stop.is_set():
        batch = batches.draw()
        generator = torch.Generator().manual_seed(a.seed * 10**7 + run.step)
        noise, t = torch.randn(batch.mel.shape, generator=generator), torch.rand(a.batch, generator=generator)
        lr = a.lr * min(1, (run.step + 1) / a.warmup) * 0.5 ** (run.step / a.halve_every)
        for group in run.opt.param_groups:
            group["lr"] = lr
        loss = velocity_loss(run.dit, batch, noise, t)
        run.opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(run.dit.parameters(), 5.0)
        if torch.isfinite(norm):
            run.opt.step()
        with torch.no_grad():
            decay = min(a.ema, (run.step + 1) / (run.step + 10))
            torch._foreach_lerp_(list(run.ema.parameters()), list(run.dit.parameters()), 1 - decay)
        run.step += 1
        sums += [float(loss.detach()), float(norm)]
        count += 1
        if run.step % 50 == 0:
            now = time.process_time()
            held = validate(run.ema, held_out) if run.step % 250 == 0 else float("nan")
            row = [run.step, round(run.seconds + now), f"{lr:.2e}", *(f"{x:.4f}" for x in sums / count), f"{held:.4f}"]
            log.writerow(row)
            print(*row, flush=True)
            sums[:], count = 0, 0
        if time.time() - saved > 240:
            run.save(time.process_time())
            saved = time.time()
    run.save(time.process_time())


if __name__ == "__main__":
    main()
