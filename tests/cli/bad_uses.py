# SPDX-License-Identifier: Apache-2.0
"""Outputs, options, voices, checkpoints and commands that cannot be used, and what people are told."""

from __future__ import annotations

import numpy as np

from tests.cli import inputs
from tests.cli.bad import Bad

VOICES = "voices come from spk_dict.pt or voices/*.safetensors in the checkpoint, or from Voice.load(path)"


def option(text: str, message: str, code: int = 2) -> Bad:
    """A bad option of ``speak`` with good codes."""
    return Bad(f"speak a.json -o out.wav --model model {text}", code, message)


def output(text: str, message: str, code: int = 2, **files: bytes) -> Bad:
    """Inputs and output that do not go together."""
    return Bad(f"speak {text} --model model", code, message, {f"{name}.json": data for name, data in files.items()})


OUTPUTS = {
    "suffix": output(
        "a.json -o out.xyz", "out.xyz: got suffix '.xyz', expected one of .wav, .pcm, .flac, .ogg, .opus, .mp3", 6
    ),
    "no suffix": output("a.json -o out", "out: got suffix '', expected one of .wav, .pcm, .flac, .ogg, .opus, .mp3", 6),
    "format": output(
        "a.json -o out.wav --format aac", "format: got 'aac', expected one of wav, pcm, flac, ogg, opus, mp3", 6
    ),
    "two formats": output(
        "a.json -o out.wav --format flac",
        "out.wav: got format 'flac' for a name that ends in .wav, expected them to agree",
        6,
    ),
    "a folder": output(
        "a.json -o model", "-o model: got a folder, expected a file; say -o model/ to write into the folder"
    ),
    "in a file": output(
        "a.json -o a.json/out.wav", "a.json: cannot be written, a.json is a file; expected a folder", 6
    ),
    "folder in a file": output(
        "a.json -o a.json/x/", "a.json/x: cannot be written, a.json is a file; expected a folder", 6
    ),
    "one file for two": output(
        "a.json b.json -o out.wav", "-o out.wav: got one file for 2 inputs, expected a folder; say -o DIR/", b=b"[1]"
    ),
    "one stream for two": output(
        "a.json b.json -o -", "-o -: got 2 inputs for one stream, expected one; name a folder, -o DIR/", b=b"[1]"
    ),
    "one name for two": output(
        "a.json ./a.json -o out/", "./a.json: would become out/a.wav, as a.json would; rename one, or write two folders"
    ),
    "stdin twice": output("- - -o out/", "-: standard input is named twice, expected once"),
    "json and sound": output(
        "a.json -o - --json",
        "--json: standard output carries the sound already; write a file, or leave one of them out",
    ),
}

OPTIONS = {
    "steps 1": option(
        "--steps 1", "steps: got 1, expected an integer from 2 to 1000; steps counts time points, 10 points are 9 steps"
    ),
    "steps 1001": option(
        "--steps 1001",
        "steps: got 1001, expected an integer from 2 to 1000; steps counts time points, 10 points are 9 steps",
    ),
    "steps word": option("--steps ten", "Invalid value for '--steps': ... See --help."),
    "guidance nan": option("--guidance nan", "guidance: got nan, expected a finite number; 0 turns guidance off"),
    "guidance inf": option("--guidance inf", "guidance: got inf, expected a finite number; 0 turns guidance off"),
    "sway 3": option("--sway 3", "sway: got 3.0, expected a number from -1 to 1.75, or None; time must run forward"),
    "sway nan": option("--sway nan", "sway: got nan, expected a number from -1 to 1.75, or None"),
    "sway word": option("--sway much", "sway: got 'much', expected a number from -1 to 1.75, or none"),
    "preset": option("--preset fastest", "preset: got 'fastest', expected one of ['exact', 'fast', 'faster']"),
    "guidance per": option("--guidance-per time", "guidance_per: got 'time', expected one of ['evaluation', 'step']"),
    "solver": option("--solver heun", "solver: got 'heun', expected one of ['euler', 'midpoint', 'rk2', 'rk4']"),
    "seed -1": option("--seed -1", "seed: got -1, expected an integer from 0 to 4294967295"),
    "seed 2^32": option("--seed 4294967296", "seed: got 4294967296, expected an integer from 0 to 4294967295"),
    "seed word": option("--seed lucky", "Invalid value for '--seed': ... See --help."),
    "device": option("--device tpu7", "device: got 'tpu7', expected a device of this machine (...)"),
    "dtype": option("--dtype int8", "dtype: got 'int8', expected one of float32, float64, bfloat16, float16"),
    "threads 0": option("--threads 0", "threads: got 0, expected an integer from 1 to 1024"),
    "batch 0": option("--batch 0", "batch: got 0, expected an integer >= 1"),
    "duration short": option(
        "--max-duration 0.001", "max_duration_s: got 0.001, expected at least one code, 0.02 s; pass None for no limit"
    ),
    "duration nan": option(
        "--max-duration nan", "max_duration_s: got nan, expected at least one code, 0.02 s; pass None for no limit"
    ),
    "unknown": option("--loud", "No such option: --loud... See --help."),
    "no output": Bad("speak a.json", 2, "Missing option '--out' / '-o'. See --help."),
    "no codes": Bad("speak -o out.wav", 2, "Missing argument 'CODES...'. See --help."),
    "command": Bad("sing a.json", 2, "No such command 'sing'. See --help."),
}

VOICES_AND_CHECKPOINTS = {
    "voice": option("--voice Nobody", f"voice: got 'Nobody', expected one of: Chelsie, Ethan; {VOICES}", 4),
    "voice file": option(
        "--voice no.safetensors", "voice no.safetensors: no such file; expected a voice in safetensors format", 4
    ),
    "voice pickle": Bad(
        "speak a.json -o out.wav --model model --voice v.pt",
        4,
        "voice v.pt: not a safetensors file (...); write it with Voice.save",
        {"v.pt": inputs.harmful_pickle()},
    ),
    "voice cut": Bad(
        "speak a.json -o out.wav --model model --voice v.safetensors",
        4,
        "voice v.safetensors: not a safetensors file (...); write it with Voice.save",
        {"v.safetensors": inputs.voice()[:-4]},
    ),
    "voice arrays": Bad(
        "speak a.json -o out.wav --model model --voice v.safetensors",
        4,
        "voice v.safetensors: got arrays ['codes'], expected xvector and reference_mel",
        {"v.safetensors": inputs.tensors(codes=[1])},
    ),
    "voice width": Bad(
        "speak a.json -o out.wav --model model --voice v.safetensors",
        4,
        "voice Mine: got an x-vector of 100 values, expected 192; use a voice made for this checkpoint",
        {"v.safetensors": inputs.voice(xvector=100)},
    ),
    "voice turned": Bad(
        "speak a.json -o out.wav --model model --voice v.safetensors",
        4,
        "voice Mine: got a reference mel of 60 bins, expected 80; it looks transposed, frames come first; make it "
        "as [frames, bins] with the checkpoint's mel settings",
        {"v.safetensors": inputs.voice(frames=80, bins=60)},
    ),
    "voice short": Bad(
        "speak a.json -o out.wav --model model --voice v.safetensors",
        4,
        "voice Mine: got a reference mel of 3 frames, expected at least 5: the speaker encoder pads by reflection; "
        "use a longer reference, a few seconds are usual",
        {"v.safetensors": inputs.voice(frames=3)},
    ),
    "no folder": Bad(
        "speak a.json -o out.wav --model ./no/such",
        5,
        "./no/such: no such folder, and no hub id such as Qwen/Qwen2.5-Omni-7B; check the path, or make a random "
        "checkpoint with `blockwave make-checkpoint`",
    ),
    "a file": Bad(
        "speak a.json -o out.wav --model a.json", 5, "a.json: got a file, expected the folder that holds it or a hub id"
    ),
    "no config": Bad(
        "speak a.json -o out.wav --model m",
        5,
        "m/config.json: no such file; expected the JSON of a checkpoint as published, in a folder with its "
        "safetensors files",
        {"m/x": b"x"},
    ),
    "broken config": Bad(
        "info --model m",
        5,
        "m/config.json: broken JSON (...)...",
        {"m/config.json": b"{"},
    ),
    "other config": Bad(
        "info --model m",
        5,
        "m/config.json: config.json: got no token2wav_config with dit_config and bigvgan_config; expected the "
        "configuration of a model with a Token2Wav stage, e.g. Qwen/Qwen2.5-Omni-7B",
        {"m/config.json": b"{}"},
    ),
    "not in the cache": Bad(
        "info --model Some/Model-7B",
        5,
        "Some/Model-7B: no such folder, and cannot get config.json from the hub: it is not in the hub cache and "
        "could not be fetched; ...",
    ),
}

OTHERS = {
    "check": Bad(
        "voices check no.safetensors", 4, "voice no.safetensors: no such file; expected a voice in safetensors format"
    ),
    "check turned": Bad(
        "voices check v.safetensors --model model",
        4,
        "voice Mine: got a reference mel of 60 bins, expected 80; it looks transposed, frames come first; make it "
        "as [frames, bins] with the checkpoint's mel settings",
        {"v.safetensors": inputs.voice(frames=80, bins=60)},
    ),
    "show": Bad(
        "voices show Nobody --model model", 4, f"voice: got 'Nobody', expected one of: Chelsie, Ethan; {VOICES}"
    ),
    "convert suffix": Bad(
        "voices convert a.csv -o v.safetensors",
        4,
        "voice a.csv: got suffix '.csv', expected one of .pt, .safetensors, .json, .npz",
    ),
    "convert to json": Bad(
        "voices convert model/spk_dict.pt -o v.json", 4, "voice v.json: got suffix '.json', expected .safetensors"
    ),
    "convert several": Bad(
        "voices convert model/spk_dict.pt -o v.safetensors",
        4,
        "voice model/spk_dict.pt: got 2 speakers, expected one of them named: Chelsie, Ethan",
    ),
    "convert unknown": Bad(
        "voices convert model/spk_dict.pt -o v.safetensors --speaker Bob",
        4,
        "voice model/spk_dict.pt: got speaker 'Bob', expected one of: Chelsie, Ethan",
    ),
    "convert pickle": Bad(
        "voices convert v.pt -o v.safetensors",
        4,
        "v.pt: refused, its pickle asks for more than tensors and plain values (...); loading it would run code "
        "from the file; expected a dictionary of tensors, get the file from its original source",
        {"v.pt": inputs.harmful_pickle()},
    ),
    "convert list": Bad(
        "voices convert a.json -o v.safetensors", 4, "voice a.json: got list, expected xvector and reference_mel"
    ),
    "convert half": Bad(
        "voices convert v.npz -o v.safetensors",
        4,
        "voice v.npz: got ['xvector'], expected xvector and reference_mel",
        {"v.npz": inputs.npz(xvector=[1.0])},
    ),
    "convert ragged": Bad(
        "voices convert v.json -o v.safetensors",
        4,
        "voice v.json: got rows of unequal length, expected xvector [D], reference_mel [T, M]",
        {"v.json": b'{"xvector": [1], "reference_mel": [[1, 2], [3]]}'},
    ),
    "convert nan": Bad(
        "voices convert v.npz -o v.safetensors",
        4,
        "voice v: xvector holds NaN or infinity, expected finite numbers",
        {"v.npz": inputs.npz(xvector=[np.nan], reference_mel=[[1.0]])},
    ),
    "convert info": Bad(
        "voices convert v.json -o v.safetensors",
        4,
        "voice v.json: got info [], expected an object of texts",
        {"v.json": b'{"xvector": [1], "reference_mel": [[1]], "info": []}'},
    ),
    "size": Bad("make-checkpoint m --size huge", 2, "size: got 'huge', expected one of full, small, tiny"),
    "shards": Bad("make-checkpoint m --shards 0", 2, "shards: got 0, expected 1 to 99"),
    "there": Bad(
        "make-checkpoint m",
        2,
        "m: the folder is not empty; choose another one, or ask to overwrite the checkpoint in it",
        {"m/config.json": b"{}"},
    ),
    "alien": Bad(
        "make-checkpoint m --force",
        2,
        "m: holds thesis.tex, which no checkpoint of ours has; only a checkpoint is overwritten, choose another "
        "folder or empty it yourself",
        {"m/thesis.tex": b"x"},
    ),
    "onto a file": Bad(
        "make-checkpoint a.json",
        2,
        "a.json: got a file, expected a folder to write a checkpoint into; choose another name",
    ),
    "doctor device": Bad("doctor --device tpu7", 2, "device: got 'tpu7', expected a device of this machine (...)"),
}
