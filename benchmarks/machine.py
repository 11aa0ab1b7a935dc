# SPDX-License-Identifier: Apache-2.0
"""What a number was measured on, and how its JSON is written."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch

import blockwave

RESULTS = Path(__file__).parent / "results"


def describe() -> dict[str, Any]:
    """Machine, versions and threads."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "transformers")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(),
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"blockwave": blockwave.__version__, **versions},
        "load_average_1min": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def write(name: str, content: dict[str, Any]) -> Path:
    """Writes results/NAME.json and returns its path."""
    return write_json(RESULTS / f"{name}.json", content)


def write_json(path: Path, content: dict[str, Any]) -> Path:
    """Writes a file, beside and then renamed, and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)
    return path
