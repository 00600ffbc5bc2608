"""The help desk of the examples honours idempotency keys and hides no call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.desk import help_desk

FILING = {"ticket": "T-1", "reply": "Hello"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[httpx.Client]:
    with help_desk(tmp_path) as url, httpx.Client(base_url=url) as client:
        yield client


def file(desk: httpx.Client, key: str, document: dict[str, str]) -> httpx.Response:
    return desk.post("/filings", json=document, headers={"Idempotency-Key": key})


def test_a_repeated_key_gets_the_first_answer_and_is_counted(desk: httpx.Client) -> None:
    first, again = file(desk, "k1", FILING), file(desk, "k1", FILING)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    counts = desk.get("/counts").json()
    assert (counts["filings"], counts["calls"], counts["duplicates"]) == (1, 2, 1)
    assert counts["calls_by_key"] == {"k1": 2}


def test_a_key_is_not_taken_for_another_document(desk: httpx.Client) -> None:
    file(desk, "k1", FILING)
    assert file(desk, "k1", FILING | {"reply": "Bye"}).status_code == 422
    assert desk.get("/counts").json()["filings"] == 1


def test_a_second_filing_of_a_ticket_under_another_key_shows(desk: httpx.Client) -> None:
    file(desk, "k1", FILING)
    file(desk, "k2", FILING)
    counts = desk.get("/counts").json()
    assert counts["duplicates"] == 0
    assert counts["filings_by_ticket"] == {"T-1": 2}


def test_no_key_no_filing(desk: httpx.Client) -> None:
    assert desk.post("/filings", json=FILING).status_code == 422
    assert desk.get("/counts").json()["calls"] == 0


def test_a_customer_is_known_or_not_and_look_ups_are_counted(desk: httpx.Client) -> None:
    assert desk.get("/customers/C-1001").json()["name"] == "Mira"
    assert desk.get("/customers/nobody").status_code == 404
    assert desk.get("/counts").json()["look_ups_by_customer"] == {"C-1001": 1, "nobody": 1}
