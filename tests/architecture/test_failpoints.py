"""The list of failpoints is closed: each is explained, and each stands somewhere on the path of a job."""

from __future__ import annotations

import ast
import re

from app.failpoints import Point
from tests.architecture import tree

PAGE = (tree.ROOT / "docs/failpoints.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([a-z_.]+)` \| ([^|]+) \|", re.MULTILINE)


def test_the_page_names_every_point_as_the_code_does() -> None:
    points = PAGE.split("\n## Points\n", 1)[1].split("\n## ", 1)[0]
    assert dict(ROW.findall(points)) == _meanings()


def test_every_point_is_reached_somewhere() -> None:
    assert _reached() == {point.name for point in Point}


def _meanings() -> dict[str, str]:
    """Each point with the line that stands under it."""
    module = tree.syntax(tree.ROOT / "app/failpoints.py")
    [points] = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == Point.__name__]
    values = [node.value for node in points.body[1:] if isinstance(node, ast.Assign | ast.Expr)]
    texts = [str(ast.literal_eval(value)) for value in values]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _reached() -> set[str]:
    return {
        node.args[0].attr
        for path in tree.python("app", "workers")
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "reach" and isinstance(node.args[0], ast.Attribute)
    }
