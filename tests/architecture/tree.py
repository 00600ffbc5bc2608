"""The tree as it would be committed, read as text and as syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("app", "workers", "migrations", "tests", "examples", "bench")

_LEFT_OUT = {".git", ".venv", ".venv-tools", "__pycache__", ".outlast", ".terraform", "out", "dist"}
_CACHES = ("_cache", ".hypothesis", ".egg-info")


def files() -> list[Path]:
    """Every file that belongs to the project, as absolute paths, sorted."""
    return sorted(_walk(ROOT))


def python(*folders: str) -> list[Path]:
    """The Python files under `folders` (all of ours when none is named), sorted."""
    tops = folders or OURS
    found = [path for top in tops for path in _walk(ROOT / top) if path.suffix == ".py"]
    return sorted(found if folders else [*found, ROOT / "outlast.py"])


def name(path: Path) -> str:
    """`path` as it is written in docs and messages."""
    return path.relative_to(ROOT).as_posix()


@cache
def syntax(path: Path) -> ast.Module:
    """The parsed module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> set[str]:
    """Dotted names of everything the module imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and value of every string literal, pieces of f-strings included."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def tests() -> set[str]:
    """Every test as `tests/<file>.py::<name>`."""
    return {
        f"{name(path)}::{node.name}"
        for path in python("tests")
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name in _LEFT_OUT or path.name.endswith(_CACHES):
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path
