"""What the command line reads from and writes to people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import typer

from app.cli.dead_replay import rate_of
from app.cli.formats import aligned, cell
from app.cli.options import moment, read_ids
from app.domain.impact import Impact, merged


@pytest.mark.parametrize(("text", "age"), [("90s", 90), ("15m", 900), ("6h", 21_600), ("7d", 604_800)])
def test_an_age_is_a_moment_that_long_ago(text: str, age: int) -> None:
    assert abs((datetime.now(UTC) - moment(text)) - timedelta(seconds=age)) < timedelta(seconds=5)


def test_a_moment_is_rfc_3339_with_a_zone() -> None:
    assert moment("2031-01-01T05:30:00+05:30") == datetime(2031, 1, 1, tzinfo=UTC)
    for text in ("2031-01-01T00:00:00", "2031-01-01", "yesterday", "5", "-5m", ""):
        with pytest.raises(typer.BadParameter):
            moment(text)


def test_a_rate_is_a_positive_number_of_jobs_a_second() -> None:
    assert [rate_of(text) for text in ("200/s", "200", "0.5/s")] == [200, 200, 0.5]
    for text in ("0", "-1", "fast", "200/m", "nan"):
        with pytest.raises(typer.BadParameter):
            rate_of(text)


def test_ids_keep_their_order_and_lose_repeats() -> None:
    one, two = UUID(int=1), UUID(int=2)
    assert read_ids([str(two), str(one), str(two)]) == [two, one]
    with pytest.raises(typer.BadParameter):
        read_ids(["1"])


def test_a_cell_is_one_printable_line() -> None:
    assert cell("a\nb\x1b[31m\u009b\u202e") == "a\\nb\\x1b[31m\\x9b\\u202e"
    assert [cell(value) for value in (None, "", 0, "ünïcode")] == ["-", "-", "0", "ünïcode"]


def test_columns_stand_under_their_titles() -> None:
    assert aligned([("id", "state"), ("1234", "x")]) == ["id    state", "1234  x"]


def test_impact_of_several_batches_is_one_figure_per_kind_and_reason() -> None:
    parts = [Impact("b", "r", 1, 2, 3, 4, 1), Impact("a", "r", 1, 0, 0, 0, 0), Impact("b", "r", 10, 20, 30, 40, 1)]
    assert merged(parts) == [Impact("a", "r", 1, 0, 0, 0, 0), Impact("b", "r", 11, 22, 33, 44, 2)]
