"""A copy of the tree with a fault in it: the product itself knows no switch that would make it wrong."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.processes import ROOT

PARTS = ("app", "workers", "migrations", "examples", "tests", "outlast.py", "pyproject.toml")
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*")


def plant(edits: Sequence[tuple[str, str, str]], folder: Path) -> None:
    """Copies the tree into `folder` and makes the edits there. Raises `ValueError` when one does not fit."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=LEFT_OUT)
        else:
            shutil.copy(source, folder / part)
    for name, text in edited(edits).items():
        (folder / name).write_text(text, encoding="utf-8")


def edited(edits: Sequence[tuple[str, str, str]]) -> dict[str, str]:
    """The files that the edits change, with their new text; each edit has one place where it fits."""
    texts: dict[str, str] = {}
    for name, old, new in edits:
        text = texts.get(name) or (ROOT / name).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{name} has {text.count(old)} places, not one, where {old!r} stands")
        texts[name] = text.replace(old, new)
    return texts
