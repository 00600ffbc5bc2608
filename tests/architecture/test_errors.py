"""One root of errors, its tree drawn where it is defined; drivers' errors are named once."""

from __future__ import annotations

import ast
import inspect

from app.domain import errors
from tests.architecture import tree


def test_the_tree_in_the_docstring_is_the_tree_of_the_code() -> None:
    assert _drawn() == {
        name: kind.__mro__[1].__name__
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.OutlastError) and kind is not errors.OutlastError
    }


def test_every_error_of_ours_is_in_the_tree() -> None:
    strangers = [
        f"{tree.name(path)}: {node.name}"
        for path in tree.python("app", "workers")
        if path != tree.ROOT / "app/domain/errors.py"
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and {ast.unparse(base) for base in node.bases} & {"Exception", "BaseException", "RuntimeError", "ValueError"}
    ]
    assert strangers == []


def test_every_error_says_what_it_means() -> None:
    silent = [name for name, kind in inspect.getmembers(errors, inspect.isclass) if not kind.__doc__]
    assert silent == []


def _drawn() -> dict[str, str]:
    """Each error of the drawing with the one it hangs from."""
    parents: list[str] = []
    found: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        name = line.lstrip("│├└─ ").split(" ")[0]
        if not name or not hasattr(errors, name):
            continue
        depth = (len(line) - len(line.lstrip("│├└─ "))) // 4
        parents[depth:] = [name]
        if depth:
            found[name] = parents[depth - 1]
    return found
