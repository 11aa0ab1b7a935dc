# SPDX-License-Identifier: Apache-2.0
"""Writes the voice in the released layout, with its codebook and the codes of the held-out sentences.

python export.py --data data --flow runs/flow/last.pt --vocoder runs/vocoder/last.pt --out voice
python export.py --base OLD_VOICE --vocoder runs/vocoder/last.pt --out voice

With --base, what is not given comes from that voice: flow and speakers, codebook and sentences. The folder appears
when it is complete and has spoken once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import settings
import torch
import train_flow
import vocoder as voc
from corpus import Corpus
from safetensors.torch import save_file
from torch import nn

from blockwave import Token2Wav
from blockwave.config import Token2WavConfig
from blockwave.encoder.codebook import CODEBOOK_FILE, Codebook
from blockwave.weights.keymap import WHOLE_MODEL_PREFIX, keymap

BOS_TOKEN = 151872  # as in the released speaker file's format; this voice has no talker that would read it
CARRIED = ("spk_dict.pt", CODEBOOK_FILE, "held_out.json")


def averaged_flow(checkpoint: Path) -> nn.Module:
    dit = train_flow.make()
    dit.load_state_dict(torch.load(checkpoint, weights_only=True)["ema"])
    return dit


def averaged_vocoder(checkpoint: Path) -> tuple[nn.Module, dict]:
    """The plain module and what config.json says about it."""
    state = torch.load(checkpoint, weights_only=True)
    model = voc.make(**state["shape"])
    model.load_state_dict(state["ema"])
    return voc.fuse(model), settings.bigvgan(**state["shape"])


def reference_mel(corpus: Corpus) -> torch.Tensor:
    """A louder than average stretch of the training data, [1, REFERENCE_FRAMES, 80]."""
    for i in range(len(corpus)):
        mel = corpus.mel(i)[20:]
        if len(mel) >= settings.REFERENCE_FRAMES + 20 and mel[: settings.REFERENCE_FRAMES].mean() > -5.5:
            return torch.from_numpy(mel[None, : settings.REFERENCE_FRAMES].copy())
    raise ValueError("no training sentence is long enough for a reference mel")


def write_speakers(path: Path, data: Path, names: Sequence[str]) -> None:
    vectors = settings.xvectors(settings.SPEAKERS)
    mels = {name: reference_mel(Corpus(settings.data_of(data, name))) for name in names}
    speakers = {name: {"bos_token": BOS_TOKEN, "cond": vectors[name][None], "ref_mel": mels[name]} for name in names}
    torch.save(speakers, path)


def write_held_out(path: Path, test: Corpus) -> None:
    rows = [json.dumps({"text": test.text(i), "codes": test.codes(i).tolist()}) for i in range(len(test))]
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def write_weights(path: Path, config: Token2WavConfig, parts: dict[str, nn.Module], dtype: torch.dtype) -> int:
    parameters = {(part, name): p for part, module in parts.items() for name, p in module.named_parameters()}
    tensors = {
        WHOLE_MODEL_PREFIX + slot.name: slot.fetch(parameters[slot.part, slot.target]).detach().to(dtype).contiguous()
        for slot in keymap(config)
    }
    broken = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
    if broken:
        raise ValueError(f"{', '.join(broken)}: got values outside {dtype}, expected finite ones; write --float32")
    save_file(tensors, path, metadata={"format": "pt"})
    return sum(tensor.numel() for tensor in tensors.values())


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", type=Path, default=Path("data"))
    p.add_argument("--speakers", nargs="+", default=settings.SPEAKERS, help="those of the training data, with --flow")
    p.add_argument("--base", type=Path, help="a finished voice")
    p.add_argument("--flow", type=Path, help="checkpoint of train_flow.py")
    p.add_argument("--vocoder", type=Path, required=True, help="checkpoint of train_vocoder.py")
    p.add_argument("--codebook", type=Path, default=Path("runs/codebook.safetensors"))
    p.add_argument("--out", type=Path, default=Path("voice"))
    p.add_argument("--float32", action="store_true")
    a = p.parse_args()
    if not a.flow and not a.base:
        p.error("got neither --flow nor --base, expected one of them to bring the flow")
    beside = a.out.with_name(f".{a.out.name}.{os.getpid()}.part")
    beside.mkdir(parents=True)
    try:
        if a.base:
            for name in CARRIED:
                shutil.copyfile(a.base / name, beside / name)
        if a.flow:
            write_speakers(beside / "spk_dict.pt", a.data, a.speakers)
        if not a.base:
            shutil.copyfile(a.codebook, beside / CODEBOOK_FILE)
            write_held_out(beside / "held_out.json", Corpus(a.data, "test"))
        dit = averaged_flow(a.flow) if a.flow else Token2Wav.from_pretrained(a.base).engine.dit
        vocoder, section = averaged_vocoder(a.vocoder)
        written = settings.config_json(section, Codebook.load(beside / CODEBOOK_FILE).hash)
        (beside / "config.json").write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
        dtype = torch.float32 if a.float32 else torch.float16
        config = Token2WavConfig.from_dict(written)
        count = write_weights(beside / "model.safetensors", config, {"dit": dit, "vocoder": vocoder}, dtype)
        codes = json.loads((beside / "held_out.json").read_text(encoding="utf-8"))[0]["codes"]
        samples = Token2Wav.from_pretrained(beside)(codes, seed=0, steps=4).samples
        if len(samples) != 480 * len(codes) or not np.abs(samples).max() > 0.01:
            raise ValueError(f"{beside}: got {len(samples)} samples that reach {np.abs(samples).max():.3f}, not speech")
        for path in beside.iterdir():
            path.chmod(0o644)  # safetensors writes for the owner alone
        if a.out.exists():
            shutil.rmtree(a.out)
        beside.rename(a.out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    size = sum(path.stat().st_size for path in a.out.iterdir())
    print(f"{a.out}: {count / 1e6:.2f} M parameters, {size / 1e6:.1f} MB, loads and speaks")


if __name__ == "__main__":
    main()
