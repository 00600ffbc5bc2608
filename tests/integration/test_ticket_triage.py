"""`ticket.triage` from end to end on a real help desk: every ticket, every crash, every misfortune."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from outlast import testing
from tests.integration.desk import help_desk
from workers.handlers.ticket_triage import triage

TICKETS_FILE = Path(__file__).parents[2] / "examples" / "tickets.jsonl"
TICKETS: list[dict[str, Any]] = [json.loads(line) for line in TICKETS_FILE.read_text(encoding="utf-8").splitlines()]
TICKET = TICKETS[0]
EMPTY = next(ticket for ticket in TICKETS if not ticket["body"])
STEPS = ("classify", "history", "draft", "file")


@pytest.fixture(scope="module")
def desk_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with help_desk(tmp_path_factory.mktemp("desk")) as url:
        yield url


@pytest.fixture(autouse=True)
def desk(desk_url: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("OUTLAST_SINK_URL", desk_url)
    return Desk(desk_url)


class Desk:
    """What the desk counted since the test began."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._before = self._counts()

    def calls(self) -> int:
        return self._counts()["calls"] - self._before["calls"]

    def look_ups(self) -> int:
        return sum(self._counts()["look_ups_by_customer"].values()) - sum(self._before["look_ups_by_customer"].values())

    def _counts(self) -> dict[str, Any]:
        return httpx.get(f"{self._url}/counts").raise_for_status().json()


class Script:
    """The provider's misbehaviour in one test, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "script.json"
        self.journal = folder / "calls.jsonl"
        self.journal.touch()
        self.rules()

    def rules(self, *rules: dict[str, Any]) -> None:
        self.file.write_text(json.dumps({"journal": str(self.journal), "rules": rules}))

    def asked(self) -> list[tuple[str, int]]:
        calls = map(json.loads, self.journal.read_text().splitlines())
        return [(call["step"], call["attempt"]) for call in calls]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    script = Script(tmp_path)
    monkeypatch.setenv("OUTLAST_TRIAGE_SCRIPT", str(script.file))
    return script


def renamed(name: str) -> dict[str, Any]:
    """The ticket under an id of its own, so that tests do not meet at the desk."""
    return TICKET | {"id": name}


@pytest.mark.parametrize("ticket", [ticket for ticket in TICKETS if ticket is not EMPTY], ids=lambda t: t["id"])
def test_a_ticket_is_classified_answered_and_filed(ticket: dict[str, Any]) -> None:
    # In memory every job has the same id and so the same keys: the desk is asked under the ticket's own.
    ran = testing.run(triage, ticket, effects={"file": {"filing_id": "F-1"}})
    assert (ran.state, ran.error) == ("done", None)
    assert ran.result.ticket == ticket["id"]
    assert ran.result.reply == ran.effects["draft"]["reply"]
    assert set(ran.calls) == set(STEPS) - (set() if "customer" in ticket else {"history"})
    assert [step["done"] for step in ran.progress] == [1, 2, 3, 4]


def test_an_empty_ticket_is_dead_as_invalid_input_and_touches_nothing(desk: Desk, script: Script) -> None:
    ran = testing.run(triage, EMPTY)
    assert (ran.state, ran.reason, ran.attempts, ran.calls) == ("dead", "invalid_input", 1, {})
    assert (desk.calls(), desk.look_ups(), script.asked()) == (0, 0, [])


def test_the_desk_is_asked_once_and_knows_the_customer(desk: Desk) -> None:
    ran = testing.run(triage, renamed("filed-once"))
    assert ran.state == "done"
    assert "Mira" in ran.result.reply
    assert (desk.calls(), desk.look_ups()) == (1, 1)


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_after_any_step_repeats_no_step(step: str, script: Script) -> None:
    whole = testing.run(triage, TICKET, effects={"file": {"filing_id": "F-1"}})
    ran = testing.run(triage, TICKET, effects={"file": {"filing_id": "F-1"}}, crash_after=step)
    assert (ran.state, ran.attempts, ran.retries) == ("done", 2, 0)
    assert ran.calls == dict.fromkeys(STEPS, 1)
    assert ran.result == whole.result
    assert len(script.asked()) == 4


@pytest.mark.parametrize(
    ("rule", "retries"),
    [
        ({"do": "throttle", "seconds": 3}, 0),
        ({"do": "time_out"}, 1),
        ({"do": "nonsense"}, 1),
    ],
    ids=["throttle", "time_out", "nonsense"],
)
def test_a_misfortune_that_passes_costs_what_it_should(rule: dict[str, Any], retries: int, script: Script) -> None:
    script.rules(rule | {"step": "draft", "attempts": [1]})
    ran = testing.run(triage, TICKET, effects={"file": {"filing_id": "F-1"}})
    assert (ran.state, ran.attempts, ran.retries) == ("done", 2, retries)
    assert ran.calls == {"classify": 1, "history": 1, "draft": 2, "file": 1}
    assert script.asked() == [("classify", 1), ("draft", 1), ("draft", 2)]


def test_a_quota_is_waited_for_as_long_as_it_says(script: Script) -> None:
    script.rules({"do": "throttle", "seconds": 3, "attempts": [1]})
    assert waited(testing.run(triage, TICKET, effects={"file": {"filing_id": "F-1"}})) >= 3


def test_lasting_nonsense_ends_as_retries_exhausted(script: Script) -> None:
    script.rules({"do": "nonsense", "step": "draft"})
    ran = testing.run(triage, TICKET)
    assert (ran.state, ran.reason, ran.attempts) == ("dead", "retries_exhausted", 3)
    assert ran.error is not None
    assert "sandwich" not in ran.error.message


def test_a_refusal_ends_at_once(script: Script) -> None:
    script.rules({"do": "refuse", "step": "classify"})
    ran = testing.run(triage, TICKET)
    assert (ran.state, ran.reason, ran.attempts) == ("dead", "permanent_error", 1)


def test_a_desk_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_SINK_URL", "http://127.0.0.1:1")
    ran = testing.run(triage, TICKET)
    assert (ran.state, ran.reason, ran.attempts) == ("dead", "retries_exhausted", 3)


def waited(ran: testing.Ran) -> float:
    return sum(ran.delays_seconds)
