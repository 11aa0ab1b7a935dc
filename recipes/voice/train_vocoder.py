# SPDX-License-Identifier: Apache-2.0
"""Trains the vocoder on log-mels and waves: phase-free losses first, then adversarial. Stops after --minutes, resumes.

python train_vocoder.py --data data --run runs/vocoder --minutes 120
"""

from __future__ import annotations

import argparse
import csv
import signal
import threading
import time
from pathlib import Path

import numpy as np
import settings
import torch
import vocoder as voc
from corpus import Corpus
from discriminator import Discriminators, discriminator_loss, generator_loss
from losses import AlignedLoss, PeriodicityLoss, SpectralLoss
from torch import Tensor, nn

TERMS = "log_l1 converge mel40 mel80 periodicity aligned adversarial matching disc grad_norm".split()
HELD_OUT = ("mel80", "periodicity", "aligned")


Losses = tuple[SpectralLoss, PeriodicityLoss, AlignedLoss]


class Segments:
    """Random segments with true frames around them, quiet ones mostly rejected; a few at the ends of sentences."""

    EDGES = 0.01  # share of batches that end in zeros, as a sentence does

    def __init__(self, speakers: list[Corpus], batch: int, frames: int, seed: tuple[int, int]) -> None:
        self.speakers, self.batch, self.frames = speakers, batch, frames
        self.rng = np.random.default_rng(seed)
        rooms = [np.maximum(corpus.frames - frames - 2 * voc.CONTEXT[0], 0) for corpus in speakers]
        self.weights = [room / room.sum() for room in rooms]

    def draw(self) -> tuple[Tensor, Tensor, bool]:
        """mel [B, T, 80] with or without context, wave [B, frames * 240], and whether there is context."""
        mels, waves = [], []
        edge = self.rng.random() < self.EDGES
        around = 0 if edge else voc.CONTEXT[0]
        while len(mels) < self.batch:
            speaker = self.rng.integers(len(self.speakers))
            corpus, weight = self.speakers[speaker], self.weights[speaker]
            i = self.rng.choice(len(weight), p=weight)
            last = corpus.frames[i] - self.frames - around
            start = int(self.rng.integers(around, last + 1))
            if edge:
                start = int(self.rng.choice([0, last]))
            mel = corpus.mel(i, start - around, self.frames + 2 * around)
            if mel.mean() < -8.5 and self.rng.random() < 0.8 and not edge:
                continue
            mels.append(mel)
            waves.append(corpus.wave(i, start, self.frames))
        return torch.from_numpy(np.stack(mels)), torch.from_numpy(np.stack(waves)), not edge


@torch.no_grad()
def validate(model: nn.Module, test: Corpus, losses: Losses, count: int = 6) -> Tensor:
    """log-mel L1 (80 bins), periodicity and aligned loss of whole held-out sentences."""
    total = torch.zeros(len(HELD_OUT))
    for i in range(count):
        fake = voc.vocode(model, torch.from_numpy(test.mel(i)[None])).clamp(-1, 1)
        real = torch.from_numpy(test.wave(i)[None])
        total += torch.stack((losses[0](fake, real)[3], losses[1](fake, real), losses[2](fake, real)))
    return total / count


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default="data")
    p.add_argument("--speakers", nargs="+", default=settings.SPEAKERS, help="equally often")
    p.add_argument("--run", type=Path, default=Path("runs/vocoder"))
    p.add_argument("--from-voice", type=Path, help="begin with a finished voice, whose kernels may be shorter or fewer")
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--channels", type=int, default=256)
    p.add_argument("--kernels", type=int, nargs="+", default=[7])
    p.add_argument("--rates", type=int, nargs="+", default=[5, 4, 4, 3])
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--frames", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--lr-disc", type=float, default=1e-3)
    p.add_argument("--warmup", type=int, default=100)
    p.add_argument("--halve-every", type=float, default=10000, help="steps in which the learning rate halves")
    p.add_argument("--clip", type=float, default=20.0)
    p.add_argument("--gan-from", type=int, default=2500, help="step at which the adversarial phase begins")
    p.add_argument("--gan-lr", type=float, default=3e-4, help="upper bound of the learning rate from then on")
    p.add_argument("--spectral-weight", type=float, default=1.0, help="in the adversarial phase")
    p.add_argument("--periodicity-weight", type=float, default=10.0)
    p.add_argument("--aligned-weight", type=float, default=15.0)
    p.add_argument("--adversarial-weight", type=float, default=2.0)
    p.add_argument("--matching-weight", type=float, default=1.0)
    p.add_argument("--gan-ramp", type=float, default=200, help="steps in which the adversarial terms reach full weight")
    p.add_argument("--ema", type=float, default=0.998)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class Run:
    """Networks, averages, optimisers, and the place where they are kept."""

    def __init__(self, a: argparse.Namespace) -> None:
        self.shape = {"channels": a.channels, "kernels": a.kernels, "rates": a.rates}
        self.last = a.run / "last.pt"
        begin = None if self.last.exists() else a.from_voice
        self.model, self.ema = voc.make(**self.shape, voice=begin), voc.make(**self.shape)
        self.disc = Discriminators()
        self.opt = torch.optim.AdamW(self.model.parameters(), a.lr, betas=(0.8, 0.99), weight_decay=0.0)
        self.opt_disc = torch.optim.AdamW(self.disc.parameters(), a.lr_disc, betas=(0.8, 0.99), weight_decay=0.0)
        self.parts = {name: getattr(self, name) for name in ("model", "ema", "disc", "opt", "opt_disc")}
        self.step, self.seconds = 0, 0.0
        if self.last.exists():
            state = torch.load(self.last, weights_only=True)
            for name, part in self.parts.items():
                part.load_state_dict(state[name])
            self.step, self.seconds = state["step"], state["seconds"]
        else:
            self.ema.load_state_dict(self.model.state_dict())

    def save(self, done: float) -> None:
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state |= {"step": self.step, "seconds": self.seconds + done, "shape": self.shape}
        torch.save(state, self.last.with_suffix(".tmp"))
        self.last.with_suffix(".tmp").replace(self.last)


def main() -> None:
    a = options()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    a.run.mkdir(parents=True, exist_ok=True)
    run, losses, test = Run(a), (SpectralLoss(), PeriodicityLoss(), AlignedLoss()), Corpus(a.data, "test")
    speakers = [Corpus(settings.data_of(a.data, name)) for name in a.speakers]
    segments = Segments(speakers, a.batch, a.frames, (a.seed, run.step))
    print(f"step {run.step}, {sum(x.numel() for x in run.model.parameters()) / 1e6:.2f} M", flush=True)
    table = a.run / "loss.csv"
    new = not table.exists()
    log = csv.writer(table.open("a", buffering=1), lineterminator="\n")
    if new:
        log.writerow(["step", "cpu_seconds", "lr", *TERMS, *(f"held_out_{name}" for name in HELD_OUT)])
    started, saved, sums, count = time.time(), time.time(), np.zeros(len(TERMS)), 0
    asked_to_stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.set())
    while time.time() - started < a.minutes * 60 and not asked_to_stop.is_set():
        gan = run.step >= a.gan_from
        lr = a.lr * min(1, (run.step + 1) / a.warmup) * 0.5 ** (run.step / a.halve_every)
        lr = min(lr, a.gan_lr) if gan else lr
        for group in run.opt.param_groups:
            group["lr"] = lr
        mel, real, inside = segments.draw()
        fake = (voc.vocode_inside if inside else voc.vocode)(run.model, mel)
        terms = [*losses[0](fake, real), losses[1](fake, real), losses[2](fake, real)]
        total = terms[0] + 0.5 * terms[1] + terms[2] + terms[3]
        total = (
            (a.spectral_weight if gan else 1.0) * total + a.periodicity_weight * terms[4] + a.aligned_weight * terms[5]
        )
        adversarial = matching = d_loss = torch.zeros(())
        if gan:
            real_out = run.disc(real)
            d_loss = discriminator_loss(real_out, run.disc(fake.detach()))
            run.opt_disc.zero_grad(set_to_none=True)
            d_loss.backward()
            run.opt_disc.step()
            run.disc.requires_grad_(False)
            adversarial, matching = generator_loss(run.disc, real_out, run.disc(fake))
            run.disc.requires_grad_(True)
            ramp = min(1.0, (run.step - a.gan_from) / a.gan_ramp)
            total = total + ramp * (a.adversarial_weight * adversarial + a.matching_weight * matching)
        run.opt.zero_grad(set_to_none=True)
        total.backward()
        norm = nn.utils.clip_grad_norm_(run.model.parameters(), a.clip)
        if torch.isfinite(norm):
            run.opt.step()
        with torch.no_grad():
            decay = min(a.ema, (run.step + 1) / (run.step + 10))
            torch._foreach_lerp_(list(run.ema.parameters()), list(run.model.parameters()), 1 - decay)
        run.step += 1
        sums += [float(x.detach()) for x in (*terms, adversarial, matching, d_loss, norm)]
        count += 1
        if run.step % 100 == 0:
            now = time.process_time()
            held = (
                validate(run.ema, test, losses) if run.step % 500 == 0 else torch.full((len(HELD_OUT),), float("nan"))
            )
            row = [run.step, round(run.seconds + now), f"{lr:.2e}", *(f"{x:.4f}" for x in (*sums / count, *held))]
            log.writerow(row)
            print(*row, flush=True)
            sums[:], count = 0, 0
        if time.time() - saved > 240:
            run.save(time.process_time())
            saved = time.time()
    run.save(time.process_time())


if __name__ == "__main__":
    main()
