# SPDX-License-Identifier: Apache-2.0
"""Every check of the tree complains about a tree that breaks its rule, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import checks, rules

Make = Callable[[dict[str, str]], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes files below src/blockwave (paths with a leading slash: below the root) and returns the root."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name[1:] if name.startswith("/") else tmp_path / "src" / rules.PACKAGE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("path", "text", "target"),
    [
        ("codes.py", "from .engine import run", "blockwave.engine"),
        ("mel/solver.py", "from ..waveform.bigvgan import BigVGAN", "blockwave.waveform.bigvgan"),
        ("mel/solver.py", "import blockwave.engine", "blockwave.engine"),
        ("mel/solver.py", "from .. import engine", "blockwave.engine"),
        ("mel/solver.py", "from blockwave import Token2Wav", "blockwave"),
        ("mel/__init__.py", "from ..engine import run", "blockwave.engine"),
        ("mel/solver.py", "def f():\n    from ..engine import run", "blockwave.engine"),
        ("ops/a/api.py", "from ...velocity import dit", "blockwave.velocity"),
        ("testing.py", "from .quality import distance", "blockwave.quality"),
        ("__init__.py", "from .cli import main", "blockwave.cli"),
    ],
)
def test_imports_that_go_up_are_named(make, path, text, target):
    root = make({"engine/__init__.py": "", "waveform/bigvgan.py": "", "velocity/__init__.py": "", path: text})
    (complaint,) = checks.import_directions(root)
    assert path in complaint
    assert f"imports {target}," in complaint


def test_imports_that_go_down_are_fine(make):
    root = make(
        {
            "__init__.py": "from .engine import run",
            "engine/__init__.py": "from . import plan\nfrom ..mel.solver import solve\nfrom .. import errors",
            "engine/plan.py": "from ..errors import BlockwaveError\nfrom .state import State\nimport torch",
            "errors.py": "",
            "cli/__init__.py": "from blockwave import Token2Wav\nfrom .. import testing",
            "testing.py": "from .engine import run",
        }
    )
    assert checks.import_directions(root) == []


def test_a_module_outside_the_rooms_is_named(make):
    (complaint,) = checks.import_directions(make({"attic.py": ""}))
    assert "attic.py:1: got a module outside the rooms" in complaint


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("engine/engine.py", "transformers"),
        ("weights/load.py", "huggingface_hub"),
        ("server/app.py", "typer"),
        ("cli/__init__.py", "uvicorn"),
        ("ops/snake/api.py", "triton"),
        ("mel/solver.py", "scipy"),
    ],
)
@pytest.mark.parametrize("form", ["import {}", "from {}.x import y", "def f():\n    import {}.z as w"])
def test_third_parties_away_from_their_door_are_named(make, path, package, form):
    (complaint,) = checks.third_party_doors(make({path: form.format(package)}))
    assert path in complaint
    assert f"got an import of {package}, expected" in complaint


def test_third_parties_at_their_door_are_fine(make):
    root = make(
        {
            "integrations/peer.py": "import transformers",
            "weights/hub.py": "from huggingface_hub import snapshot_download",
            "ops/snake/triton.py": "import triton.language as tl",
            "cli/speak.py": "import typer, json",
            "mel/solver.py": "from __future__ import annotations\nimport torch, numpy, safetensors.torch",
        }
    )
    assert checks.third_party_doors(root) == []


@pytest.mark.parametrize("package", ["typer", "transformers", "huggingface_hub", "starlette", "flask"])
def test_what_an_import_loads_is_named(make, package):
    root = make({"__init__.py": "from . import cli", "cli.py": f"import {package}", f"/src/{package}.py": ""})
    assert checks.loaded_by_import(root / "src") == [package]


def test_licence_headers(make):
    good, late = f"{rules.SPDX}\nx = 1\n", f"x = 1\n{rules.SPDX}\n"
    root = make({"a.py": good, "b.py": f"#!/usr/bin/env python\n{good}", "c.py": late, "d.py": "", "/tests/e.py": "x"})
    assert [_file(c) for c in checks.licence_headers(root)] == ["c.py", "d.py", "e.py"]


def test_file_sizes(make):
    root = make({"a.py": "x\n" * rules.MAX_LINES, "b.py": "x\n" * (rules.MAX_LINES + 1), "c.py": "x\n" * 251})
    assert [_file(c) for c in checks.file_sizes(root)] == ["b.py"]
    assert [_file(c) for c in checks.file_sizes(root, rules.LARGE_LINES)] == ["a.py", "b.py", "c.py"]


# Put together here, so that this file does not contain it.
@pytest.mark.parametrize(
    "text",
    ["see /" + "work/x", "'/" + "tmp/out.wav'", "/" + "home/me/a", "use --" + "index-url X", "issue" + " 12"],
)
def test_forbidden_text_is_named(make, text):
    (complaint,) = checks.forbidden_text(make({"/README.md": f"fine\n{text}\n"}))
    assert "README.md:2: got " in complaint


def test_ordinary_text_is_fine(make):
    root = make(
        {"/a.md": "work/tmp, homework/x, a.b/" + "opt/c, tmp_path / 'x', issue tracker", "/.venv/b.md": "x/" + "tmp/y"}
    )
    assert checks.forbidden_text(root) == []


@pytest.mark.parametrize("handler", ["except Exception:", "except:", "except (ValueError, BaseException) as error:"])
def test_broad_excepts_are_named(make, handler):
    text = f"try:\n    pass\n{handler}\n    raise\n"
    root = make({"mel/solver.py": text, "engine/engine.py": text, "engine/plan.py": text, "server/app.py": text})
    assert [_file(c) for c in checks.broad_excepts(root)] == ["plan.py", "solver.py"]
    assert checks.broad_excepts(make({"mel/solver.py": "", "engine/plan.py": ""})) == []


def test_vague_names(make):
    root = make({"utils.py": "", "mel/helpers/x.py": "", "mel/solver.py": ""})
    assert sorted(_file(c) for c in checks.vague_names(root)) == ["helpers", "utils.py"]


@pytest.mark.parametrize(
    "call", ["x.cpu()", "x.squeeze()", "torch.manual_seed(0)", "torch.autocast('cuda')", "np.random.seed(0)"]
)
def test_stage_habits(make, call):
    root = make({"mel/solver.py": call, "weights/load.py": call})
    assert [_file(c) for c in checks.stage_habits(root)] == ["solver.py"]
    fine = "torch.Generator('cpu').manual_seed(0)\nx.squeeze(1)\nx.to(device)"
    assert checks.stage_habits(make({"mel/solver.py": fine})) == []


def _file(complaint: str) -> str:
    return complaint.split(":")[0].rsplit("/", 1)[-1]
