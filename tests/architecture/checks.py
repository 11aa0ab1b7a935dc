# SPDX-License-Identifier: Apache-2.0
"""Checks of the source tree. Each takes a repository's root and returns complaints, ``path:line: what``."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.architecture import rules

CODE_FOLDERS = ("src", "tests", "benchmarks", "examples", "docs", "recipes")
SKIPPED_FOLDERS = frozenset(
    {".git", ".venv", "build", "dist", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis"}
)
TEXT_SUFFIXES = frozenset(
    {"", ".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ".cfg", ".sh", ".html", ".js", ".css"}
)


def import_directions(root: Path) -> list[str]:
    """Imports inside the package only go down the list of rooms; every module belongs to a room."""
    rank = {room: i for i, room in enumerate(rules.ROOMS)}
    complaints = []
    for path, module, tree in _modules(root):
        room = _room(module)
        if room not in rank:
            complaints.append(f"{path}:1: got a module outside the rooms, expected one of {', '.join(rules.ROOMS)}")
            continue
        for line, name in _imports(tree, module, path.name == "__init__.py", _names(root)):
            target = _room(name)
            if name.split(".")[0] == rules.PACKAGE and rank.get(target, len(rank)) > rank[room]:
                complaints.append(f"{path}:{line}: {room} imports {name}, expected only rooms before {room}")
    return complaints


def third_party_doors(root: Path) -> list[str]:
    """Packages of others are imported at their doors only, wherever in the file the import stands."""
    complaints = []
    for path, module, tree in _modules(root):
        inside = path.relative_to(root / "src" / rules.PACKAGE).as_posix()
        for line, name in _imports(tree, module, path.name == "__init__.py", _names(root)):
            top = name.split(".")[0]
            if top in sys.stdlib_module_names or top in rules.BASE or top == rules.PACKAGE:
                continue
            doors = rules.DOORS.get(top, ())
            if not any(fnmatch(inside, door) for door in doors):
                expected = " or ".join(doors) or "no import of it: it has no door in tests/architecture/rules.py"
                complaints.append(f"{path}:{line}: got an import of {top}, expected {expected}")
    return complaints


def loaded_by_import(source: Path) -> list[str]:
    """Modules that ``import blockwave`` loads in a fresh interpreter although they belong behind a door."""
    # Names of the package may be imported lazily: ask for all of them.
    script = (
        f"import sys; from {rules.PACKAGE} import *; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(source)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    # torch itself may load triton, which is its own business.
    return sorted(set(run.stdout.split()) & (rules.DOORS.keys() - {"triton"} | rules.NEVER_LOADED))


def licence_headers(root: Path) -> list[str]:
    """Every Python file names its licence in the first line, or in the second after an interpreter line."""
    complaints = []
    for path in _python_files(root):
        lines = path.read_text(encoding="utf-8").splitlines()[:2]
        first = lines[1:] if lines and lines[0].startswith("#!") else lines
        if first[:1] != [rules.SPDX]:
            complaints.append(f"{path}:1: got {first[:1]}, expected {rules.SPDX!r}")
    return complaints


def file_sizes(root: Path, limit: int = rules.MAX_LINES) -> list[str]:
    """Python files of more than ``limit`` lines."""
    sizes = ((path, len(path.read_text(encoding="utf-8").splitlines())) for path in _python_files(root))
    return [f"{path}:{lines}: got {lines} lines, expected at most {limit}" for path, lines in sizes if lines > limit]


def forbidden_text(root: Path) -> list[str]:
    """Paths of machines and the like, in any text of the repository."""
    complaints = []
    for path in _text_files(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, what in rules.FORBIDDEN_TEXT.items():
                if found := re.search(pattern, line):
                    complaints.append(f"{path}:{number}: got {found[0]!r}, {what}")
    return complaints


def broad_excepts(root: Path) -> list[str]:
    """``except Exception`` stands once in each room with a request's boundary and nowhere else."""
    complaints, seen = [], set()
    for path, module, tree in _modules(root):
        for node in ast.walk(tree):
            if not isinstance(node, ast.ExceptHandler) or not _is_broad(node.type):
                continue
            room = _room(module)
            if room not in rules.REQUEST_BOUNDARIES or room in seen:
                complaints.append(
                    f"{path}:{node.lineno}: got a broad except, expected the errors that can happen by name"
                )
            seen.add(room)
    return complaints


def vague_names(root: Path) -> list[str]:
    """Modules and folders whose name says nothing about what is inside."""
    package = root / "src" / rules.PACKAGE
    paths = (path for path in package.rglob("*") if "__pycache__" not in path.parts)
    return [f"{path}: got a vague name, expected what is inside" for path in paths if path.stem in rules.VAGUE_NAMES]


def stage_habits(root: Path) -> list[str]:
    """Stages compute where and with what they are told: no transfers, no guessed axes, no autocast, no global seeds."""
    complaints = []
    for path, module, tree in _modules(root):
        if _room(module) not in rules.STAGES:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            called = ast.unparse(node.func)
            guessed = node.func.attr == "squeeze" and not (node.args or node.keywords)
            seeded = re.fullmatch(r"(torch(\.random)?\.manual_seed(_all)?|np\.random\.seed|random\.seed)", called)
            if guessed or seeded or node.func.attr in ("cpu", "autocast"):
                complaints.append(
                    f"{path}:{node.lineno}: got {called}(), expected device, dtype and noise as arguments"
                )
    return complaints


def _is_broad(node: ast.expr | None) -> bool:
    names = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(name is None or ast.unparse(name) in ("Exception", "BaseException") for name in names)


def _python_files(root: Path) -> Iterator[Path]:
    for folder in CODE_FOLDERS:
        yield from sorted(path for path in (root / folder).rglob("*.py") if "__pycache__" not in path.parts)


def _text_files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        paths = (Path(folder, name) for name in sorted(files))
        yield from (path for path in paths if path.suffix in TEXT_SUFFIXES and path.is_file())


def _modules(root: Path) -> Iterator[tuple[Path, str, ast.Module]]:
    """(path, dotted name, syntax tree) of every module of the package."""
    source = root / "src"
    for path in sorted((source / rules.PACKAGE).rglob("*.py")):
        if "__pycache__" not in path.parts:
            yield path, _name(source, path), ast.parse(path.read_text(encoding="utf-8"), str(path))


def _names(root: Path) -> frozenset[str]:
    source = root / "src"
    return frozenset(_name(source, path) for path in (source / rules.PACKAGE).rglob("*.py"))


def _name(source: Path, path: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def _imports(tree: ast.Module, module: str, is_package: bool, known: frozenset[str]) -> Iterator[tuple[int, str]]:
    """(line, absolute name) of every import, lazy ones and those under TYPE_CHECKING included."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                yield node.lineno, submodule if submodule in known else origin
