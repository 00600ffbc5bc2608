"""What the command line reads from and writes to people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import pytest
import typer

from app import settings
from app.cli.dead_replay import rate_of
from app.cli.exits import ExitCode, exit_code_of, read_settings
from app.cli.formats import aligned, cell
from app.cli.options import moment, name, read_ids
from app.cli.selecting import fingerprint
from app.cli.text import refuse_what_is_no_text
from app.domain.errors import BrokerAway, DatabaseAway, DependencyAway, Refused
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


@pytest.mark.parametrize("text", ["999999d", "2031-01-01T12:00:00", "soon"])
def test_a_moment_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        moment(text)


def test_a_filter_that_can_match_nothing_is_a_usage_error() -> None:
    assert name("ticket.triage") == "ticket.triage"
    assert fingerprint("5c1d") == "5c1d"
    for parse, text in ((name, "Ticket Triage"), (name, ""), (fingerprint, "5C1D"), (fingerprint, "\udcff")):
        with pytest.raises(typer.BadParameter):
            parse(text)


def test_an_argument_that_is_not_utf_8_is_refused() -> None:
    refuse_what_is_no_text(["--reason", "été"])
    with pytest.raises(Refused, match="not UTF-8"):
        refuse_what_is_no_text(["--reason", "\udcff"])


@pytest.mark.parametrize(
    ("setting", "url", "why"),
    [
        ("DATABASE_URL", "nonsense", "must begin with postgresql://"),
        ("REDIS_URL", "http://127.0.0.1", "must begin with redis://"),
        ("SQS_ENDPOINT_URL", "127.0.0.1:4566", "must be an http:// or https:// address"),
        ("SQS_PREFIX", "ours.", "String should match pattern"),
        ("DATABASE_URL", "postgresql://u:geheim@127.0.0.1:port/x", "has a host or a port that cannot be read"),
        ("DATABASE_URL", "postgresql://u:geheim@127.0.0.1:99999/x", "has a host or a port that cannot be read"),
        ("REDIS_URL", "redis://:geheim@[::1/0", "has a host or a port that cannot be read"),
    ],
)
def test_an_address_that_is_none_is_a_usage_error_that_names_the_setting_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], setting: str, url: str, why: str
) -> None:
    monkeypatch.setenv(f"OUTLAST_{setting}", url)
    assert exit_code_of(read_settings) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"OUTLAST_{setting}: {why}" in said
    assert "geheim" not in said


def test_several_hosts_are_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_DATABASE_URL", "postgresql://u:p@a:5432,b:5433/x")
    read_settings()


def test_sqs_without_its_extra_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OUTLAST_TRANSPORT", "sqs")
    read_settings()
    none: dict[str, object] = {}
    monkeypatch.setattr(settings, "find_spec", none.get)
    assert exit_code_of(read_settings) == ExitCode.USAGE
    assert "outlast[sqs]" in capsys.readouterr().err


def test_a_server_that_is_away_is_named_with_where_its_address_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    def ask(away: DependencyAway) -> None:
        raise away

    broker, database = BrokerAway("no"), DatabaseAway("no")
    for away, words in ((database, "PostgreSQL (OUTLAST_DATABASE_URL)"), (broker, "the broker (OUTLAST_REDIS_URL)")):
        assert exit_code_of(partial(ask, away)) == ExitCode.DEPENDENCY_AWAY
        assert capsys.readouterr().err == f"outlast: {words} does not answer: no\n"
