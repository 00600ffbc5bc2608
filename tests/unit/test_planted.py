"""The faults that are planted in the product still fit it, and each is looked for by rules that there are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.chaos.checker import RULES
from tests.chaos.planted.copies import edited, plant
from tests.chaos.planted.flaws import FLAWS, Flaw

BESIDE_THE_CHECKER = {"audit", "broker", "charged"}
AT_LEAST = 12


@pytest.mark.parametrize("flaw", FLAWS, ids=[flaw.name for flaw in FLAWS])
def test_a_planted_fault_fits_the_tree_as_it_is(flaw: Flaw) -> None:
    for name, text in edited(flaw.edits).items():
        if name.endswith(".py"):
            ast.parse(text)
    rules = {rule.__name__.replace("_", " ") for rule in RULES} | BESIDE_THE_CHECKER
    assert flaw.rules
    assert flaw.rules <= rules


def test_there_are_enough_of_them_and_no_two_of_one_name() -> None:
    assert len({flaw.name for flaw in FLAWS}) == len(FLAWS) >= AT_LEAST


def test_a_fault_is_planted_in_a_copy_alone(tmp_path: Path) -> None:
    flaw = FLAWS[0]
    before = {name: Path(name).read_text() for name, _, _ in flaw.edits}
    plant(flaw.edits, tmp_path)
    assert {name: Path(name).read_text() for name in before} == before
    assert {name: (tmp_path / name).read_text() for name in before} == edited(flaw.edits)
