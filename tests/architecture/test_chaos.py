"""The page about runs under faults lists what there is: every run, and every fault that its checker must catch."""

from __future__ import annotations

import re

from tests.architecture import tree
from tests.chaos.measured.runner import MODULES
from tests.chaos.planted.flaws import FLAWS
from tests.chaos.runs import SIZES
from tests.unit.test_checker import PLANTED

PAGE = (tree.ROOT / "docs" / "chaos.md").read_text(encoding="utf-8")
TEST_NAME = re.compile(r"tests/[\w/]+\.py(?:::\w+)?")
AT_POINTS = "N2"


def rows(head: str) -> list[tuple[str, ...]]:
    """The body of the table whose first column is called so, cells stripped."""
    table = PAGE.split(f"\n| {head} |", 1)[1].split("\n\n", 1)[0]
    return [tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in table.splitlines()[2:]]


def test_every_run_is_on_the_page() -> None:
    runs = {short.name for short, _ in SIZES} | {module.RUN.name for module in MODULES} | {AT_POINTS}
    assert {row[0].strip("`") for row in rows("run")} == runs


def test_every_run_says_what_must_hold() -> None:
    assert [row for row in rows("run") if len(row) != 3 or not all(row)] == []


def test_the_faults_planted_in_records_are_those_of_the_checkers_tests() -> None:
    planted = {plant.__name__.replace("_", " "): rule for plant, rule in PLANTED.items()}
    assert {row[0]: row[1] for row in rows("planted in the records")} == planted


def test_the_faults_planted_in_the_product_are_those_that_must_be_caught() -> None:
    flaws = {flaw.name: ", ".join(sorted(flaw.rules)) for flaw in FLAWS}
    assert {row[0]: row[1] for row in rows("planted in the product")} == flaws


def test_every_test_the_page_names_exists() -> None:
    known = tree.tests() | {tree.name(path) for path in tree.python("tests")}
    assert set(TEST_NAME.findall(PAGE)) - known == set()
