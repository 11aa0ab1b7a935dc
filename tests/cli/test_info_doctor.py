# SPDX-License-Identifier: Apache-2.0
"""``info``, ``doctor`` and ``make-checkpoint``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from blockwave.weights.presets import config_json
from tests.cli.conftest import tree


def test_info_counts_what_the_file_holds(run, checkpoint):
    told = json.loads(run("info", "-m", "model", "--json").out)
    weights = load_file(checkpoint / "model.safetensors")
    ours = {name: value.numel() for name, value in weights.items() if name.startswith("token2wav.")}
    vocoder = sum(size for name, size in ours.items() if "bigvgan" in name)
    assert told["tensors"] == len(ours)
    assert told["parameters"]["total"] == sum(ours.values())
    assert told["parameters"]["vocoder"] == vocoder
    assert sum(told["parameters"].values()) == 2 * sum(ours.values())
    assert told["files"] == {"model.safetensors": (checkpoint / "model.safetensors").stat().st_size}
    assert (told["random_weights"], told["voices"], told["default_voice"]) == (True, ["Chelsie", "Ethan"], "Chelsie")


def test_info_of_the_released_sizes(run, place):
    """The published numbers, from the configuration alone: no weights are read."""
    Path("full").mkdir()
    Path("full/config.json").write_text(json.dumps(config_json("full")))
    Path("full/model.safetensors").touch()
    told = json.loads(run("info", "-m", "full", "--json").out)
    assert told["tensors"] == 808
    assert round(told["parameters"]["total"] / 1e6, 2) == 449.05
    assert round(told["parameters"]["vocoder"] / 1e6, 1) == 115.4
    assert told["rates"] == {
        "sample_rate": 24000,
        "codes_per_second": 50.0,
        "frames_per_code": 2,
        "samples_per_code": 480,
        "frames_per_block": 24,
        "seconds_per_block": 0.24,
        "max_codes": 16384,
        "max_seconds": 327.68,
    }
    reach = told["receptive_field"]
    assert reach["one_evaluation"] == {"blocks_behind": 2, "blocks_ahead": 1}
    solve = {key: reach["one_solve"][key] for key in ("evaluations", "blocks_behind", "blocks_ahead")}
    assert solve == {"evaluations": 36, "blocks_behind": 72, "blocks_ahead": 36}
    assert reach["one_solve"]["seconds_ahead"] == pytest.approx(8.64)
    assert reach["vocoder"] == {"frames_behind": 34, "frames_ahead": 34}
    looking = {row["layer"]: (row["blocks_behind"], row["blocks_ahead"]) for row in told["layers"]}
    assert {layer: look for layer, look in looking.items() if look != (0, 0)} == {0: (1, 0), 10: (0, 1), 20: (1, 0)}
    assert len(looking) == 22


def test_info_for_people(run):
    text = " ".join(run("info", "-m", "model").out.decode().split())
    for words in ("random weights yes", "family qwen2.5-omni", "samples per code: 480", "blocks behind 72"):
        assert words in text


def test_doctor(run):
    told = json.loads(run("doctor", "--json").out)
    assert told["compute"]["device"] == "cpu"
    assert told["compute"]["dtype"] == "float32"
    assert told["versions"]["torch"] == torch.__version__
    assert told["versions"]["numpy"] == np.__version__
    assert told["threads"]["of_one_operation"] == torch.get_num_threads()
    assert told["operators"]["antialiased_snake"].startswith("native: ")
    assert told["optional_packages"]["rich"][0].isdigit()
    text = " ".join(run("doctor").out.decode().split())
    assert f"torch: {torch.__version__}" in text


def test_doctor_names_what_is_missing(run, monkeypatch):
    version = metadata.version

    def bare(package: str) -> str:
        if package in ("soundfile", "soxr", "huggingface_hub"):
            raise metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(metadata, "version", bare)
    packages = json.loads(run("doctor", "--json").out)["optional_packages"]
    assert packages["soundfile"] == packages["soxr"] == 'missing; pip install "blockwave[audio]"'
    assert packages["huggingface_hub"] == 'missing; pip install "blockwave[hub]"'
    assert packages["rich"] == version("rich")


def test_make_checkpoint(run, place):
    result = run("make-checkpoint", "m", "--shards", 3, "--seed", 5)
    assert (result.code, result.out) == (0, b"")
    assert result.err == "m: a tiny checkpoint of random weights; it makes noise, not speech\n"
    shards = {f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)}
    assert tree(Path("m")) == {"config.json", "spk_dict.pt", "model.safetensors.index.json", *shards}
    assert json.loads(Path("m/config.json").read_text())["blockwave"] == {"random": True}
    told = json.loads(run("info", "-m", "m", "--json").out)
    assert told["random_weights"] is True
    first = Path("m/model-00002-of-00003.safetensors").read_bytes()
    assert run("make-checkpoint", "m", "--force", "--shards", 3, "--seed", 6).code == 0
    assert Path("m/model-00002-of-00003.safetensors").read_bytes() != first
    assert run("make-checkpoint", "m", "--force", "--shards", 3, "--seed", 5).code == 0
    assert Path("m/model-00002-of-00003.safetensors").read_bytes() == first


@pytest.mark.parametrize(("given", "told"), [(None, "1000"), ("7", "7")])
def test_threads_do_not_wait_long_unless_told(given, told):
    """Set before torch is loaded, which reads it once; a value from outside stays."""
    environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    if given is not None:
        environment["GOMP_SPINCOUNT"] = given
    script = "import sys; from blockwave.cli import main; assert 'torch' not in sys.modules; main(['doctor', '--json'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout)["threads"]["waits"] == f"GOMP_SPINCOUNT={told}"
