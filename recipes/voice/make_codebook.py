# SPDX-License-Identifier: Apache-2.0
"""k-means codebook on pairs of log-mel frames, and the codes of the corpus. Id 0 is left to the unconditional code.

python make_codebook.py --data data --out runs/codebook.safetensors

--keep uses the codebook that is there and only writes codes: a DiT depends on its codebook.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import settings
import torch
from corpus import Corpus
from safetensors.torch import save_file
from torch import Tensor

from blockwave.encoder.codebook import Codebook


def nearest(features: Tensor, centroids: Tensor, chunk: int = 8192) -> tuple[Tensor, float]:
    """Index of the nearest centroid of each row, and the mean squared distance."""
    half, index, total = 0.5 * (centroids**2).sum(1), [], 0.0
    for part in features.split(chunk):
        best = torch.addmm(half, part, centroids.T, alpha=-1).min(1)
        index.append(best.indices)
        total += float((2 * best.values + (part**2).sum(1)).sum())
    return torch.cat(index), total / features.numel()


def kmeans(features: Tensor, count: int, iterations: int, seed: int = 0) -> Tensor:
    """Lloyd, 1982, DOI 10.1109/TIT.1982.1056489; a centroid that lost all its rows restarts at a random one."""
    generator = torch.Generator().manual_seed(seed)
    centroids = features[torch.randperm(len(features), generator=generator)[:count]].clone()
    for i in range(iterations):
        index, error = nearest(features, centroids)
        size = torch.bincount(index, minlength=count).float()
        sums = torch.zeros_like(centroids).index_add_(0, index, features)
        centroids = sums / size.clamp_min(1)[:, None]
        empty = (size == 0).nonzero()[:, 0]
        if len(empty):
            centroids[empty] = features[torch.randint(len(features), (len(empty),), generator=generator)]
        print(f"iteration {i}: mean squared error {error:.4f}, {len(empty)} empty", flush=True)
    return centroids


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default="data")
    p.add_argument("--out", type=Path, default=Path("runs/codebook.safetensors"))
    p.add_argument("--iterations", type=int, default=10)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--keep", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    started = time.time()
    a.out.parent.mkdir(parents=True, exist_ok=True)
    if not a.keep:
        patches = torch.from_numpy(np.asarray(Corpus(a.data).all_mel, np.float32)).clamp_min(settings.QUIET)
        centroids = kmeans(patches.view(-1, 2 * patches.shape[1]), settings.NUM_CODES, a.iterations)
        beside = a.out.with_suffix(".tmp")
        save_file({"centroids": centroids.half()}, beside, metadata={"quiet": str(settings.QUIET), "first_id": "1"})
        beside.replace(a.out)
    codebook = Codebook.load(a.out)
    for part in ("train", "test"):
        corpus = Corpus(a.data, part)
        mel = np.asarray(corpus.all_mel, np.float32)
        codes = codebook.encode(mel)
        codes.astype(np.int16).tofile(corpus.folder / "codes.i16")
        patches = np.maximum(mel.reshape(len(codes), -1), settings.QUIET)
        error = np.abs(codebook.centroids[codes - codebook.first_id] - patches).mean()
        print(f"{part}: {len(codes)} codes, {len(np.unique(codes))} used, log-mel L1 {error:.3f}", flush=True)
    print(f"{time.time() - started:.0f} s, codebook {codebook.hash}")


if __name__ == "__main__":
    main()
