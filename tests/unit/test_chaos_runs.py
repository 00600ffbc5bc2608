"""The runs of chaos name faults that exist, want no more of them than are fired, and are told apart by their names."""

from __future__ import annotations

import pytest

from tests.chaos.faults.scene import ACTS
from tests.chaos.plan import Shape
from tests.chaos.runs import SIZES

EACH = pytest.mark.parametrize(
    "shape",
    [shape for pair in SIZES for shape in pair],
    ids=[f"{a.name}-{b}" for a, _ in SIZES for b in ("short", "long")],
)


@EACH
def test_a_run_fires_known_faults_and_wants_no_more_than_it_fires(shape: Shape) -> None:
    assert shape.faults.keys() <= ACTS.keys()
    assert {name: count for name, count in shape.wanted.items() if count > shape.faults.get(name, count)} == {}


@EACH
def test_every_run_says_what_its_faults_must_have_done(shape: Shape) -> None:
    assert shape.wanted


def test_no_two_runs_have_one_name_and_the_long_one_has_the_name_of_the_short_one() -> None:
    names = [short.name for short, _ in SIZES]
    assert len(set(names)) == len(names)
    assert names == [long.name for _, long in SIZES]
