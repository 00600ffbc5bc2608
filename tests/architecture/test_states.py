"""States, reasons and ends stand in code, in the schema's CHECKs and on the page: the same in all of them."""

from __future__ import annotations

import re
from enum import StrEnum

import pytest

from app.domain import states
from tests.architecture import tree

SCHEMA = (tree.ROOT / "migrations" / "versions" / "0001_jobs.py").read_text(encoding="utf-8")
PAGE = (tree.ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def _check(table: str, column: str) -> set[str]:
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n    \"\"\"", SCHEMA, re.DOTALL)
    assert body is not None, table
    values = re.search(rf'CHECK \("?{column}"? IN \((.*?)\)\)', body[1], re.DOTALL)
    assert values is not None, column
    return set(re.findall(r"'(\w+)'", values[1]))


def _values(enum: type[StrEnum]) -> set[str]:
    return {member.value for member in enum}


@pytest.mark.parametrize(
    ("table", "column", "enum"),
    [
        ("dead_letters", "reason", states.Reason),
        ("attempts", "end", states.AttemptEnd),
        ("effects", "state", states.EffectState),
        ("effects", "policy", states.Policy),
    ],
)
def test_a_closed_list_is_the_same_in_code_and_schema(table: str, column: str, enum: type[StrEnum]) -> None:
    assert _check(table, column) == _values(enum)


def test_final_states_are_the_only_outcomes_the_schema_takes() -> None:
    assert _check("outcomes", "state") == {state.value for state in states.FINAL}


def test_every_home_is_a_table() -> None:
    assert all(re.search(rf"CREATE TABLE {home.value} \(", SCHEMA) for home in states.Home)
    assert set(states.HOME_OF) == set(states.State)


def test_the_page_shows_the_state_table_of_the_code() -> None:
    assert _rows(states.__doc__ or "") == _rows(PAGE)
    assert [row[0] for row in _rows(PAGE)] == [state.value for state in states.State]


def test_the_page_names_every_reason_and_every_end() -> None:
    missing = [word for word in (*states.Reason, *states.AttemptEnd) if f"`{word.value}`" not in PAGE]
    assert missing == []


def _rows(text: str) -> list[tuple[str, ...]]:
    """Rows of the state table: the table whose header starts with `state`."""
    table = re.search(r"^\| *state +\|.*?(?=\n\n|\n\"\"\"|\Z)", text, re.DOTALL | re.MULTILINE)
    assert table is not None
    lines = table[0].strip().splitlines()[2:]
    return [tuple(cell.strip().strip("`") for cell in line.strip().strip("|").split(" |")) for line in lines]
