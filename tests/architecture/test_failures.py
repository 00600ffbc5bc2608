"""The catalogue of failures is whole: each is told once, has its end here, and a test that exists holds it."""

from __future__ import annotations

import re

from tests.architecture import tree

PAGE = (tree.ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
HEAD = ("failure", "what happens here", "held by")
TEST = re.compile(r"`(tests/[\w/]+\.py::(?:Test\w+::)?test_\w+)`")


def rows() -> list[tuple[str, ...]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and not set(line) <= set("|-: ")]
    cells = [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines]
    return [row for row in cells if row != HEAD]


def test_every_failure_says_what_happens_here_and_what_holds_it() -> None:
    assert [row for row in rows() if len(row) != len(HEAD) or not all(row)] == []
    assert [row[0] for row in rows() if not TEST.search(row[-1])] == []


def test_every_test_that_holds_a_failure_exists() -> None:
    named = {re.sub(r"::Test\w+", "", name) for name in TEST.findall(PAGE)}
    assert named - tree.tests() == set()
    loose = re.sub(TEST, "", PAGE)
    assert re.findall(r"tests/\S+", loose) == []


def test_no_failure_is_told_twice() -> None:
    told = [row[0] for row in rows()]
    assert sorted(set(told)) == sorted(told)
