"""Files and functions stay small. The lists of exceptions may only get shorter."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture import tree

FILE_LINES_MAX = 300
TEST_FILE_LINES_MAX = 420
FUNCTION_LINES_MAX = 40
VAGUE = {"utils", "util", "common", "helpers", "helper", "manager", "misc", "base_utils"}

LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}


def test_files_stay_small() -> None:
    lengths = {tree.name(path): _lines(path) for path in tree.python()}
    grown = {name: lines for name, lines in lengths.items() if lines > LONG_FILES.get(name, _limit(name))}
    assert grown == {}


def test_functions_stay_small() -> None:
    grown = {
        name: lines for name, lines in _functions().items() if lines > LONG_FUNCTIONS.get(name, FUNCTION_LINES_MAX)
    }
    assert grown == {}


def test_exceptions_are_still_needed() -> None:
    functions = _functions()
    spare = [name for name in LONG_FILES if _lines(tree.ROOT / name) <= _limit(name)]
    spare += [name for name in LONG_FUNCTIONS if functions.get(name, 0) <= FUNCTION_LINES_MAX]
    assert spare == []


def test_files_are_named_for_a_role() -> None:
    assert [tree.name(path) for path in tree.python() if path.stem in VAGUE] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        tree.name(path)
        for path in tree.python()
        if path.stat().st_size > 0 and ast.get_docstring(tree.syntax(path)) is None
    ]
    assert silent == []


def _limit(name: str) -> int:
    return TEST_FILE_LINES_MAX if name.startswith("tests/") else FILE_LINES_MAX


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _functions() -> dict[str, int]:
    """The lines of every function's body: a command's options and a route's parameters are declarations."""
    return {
        f"{tree.name(path)}::{node.name}": (node.end_lineno or node.lineno) - node.body[0].lineno + 1
        for path in tree.python()
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
