"""What is one request under a key: equal JSON values and equal instants, however they are written, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from httpx import AsyncClient, Response

from app.domain.kinds import Defaults
from app.domain.request import JobRequest
from app.settings import Settings
from app.store import kinds
from app.store.database import Database
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitter
from tests.integration.listening import ANY, counts, listening

FIRST = r'{"kind":"any","input":{"b":1,"a":"é"}}'

SAME = {
    "members in another order, other spaces": ' {\n"input" : {"a":"é" , "b":1},\t"kind":"any"} ',
    "a float that is the integer": r'{"kind":"any","input":{"b":1.0,"a":"é"}}',
    "an exponent": r'{"kind":"any","input":{"b":10e-1,"a":"é"}}',
    "an escape": r'{"kind":"any","input":{"b":1,"a":"\u00e9"}}',
    "an escaped member": r'{"\u006bind":"any","input":{"\u0062":1,"a":"é"}}',
    "defaults written out": r'{"kind":"any","input":{"b":1,"a":"é"},"queue":"default","priority":5,"max_retries":2}',
    "null for what is left out": r'{"kind":"any","input":{"b":1,"a":"é"},"run_at":null,"metadata":null,"queue":null}',
    "a member twice, the last one equal": r'{"kind":"any","input":{"b":7,"b":1,"a":"é"}}',
}

OTHERS = {
    "text for a number": (r'{"kind":"any","input":{"b":"1","a":"é"}}', ["/input/b"]),
    "true for one": (r'{"kind":"any","input":{"b":true,"a":"é"}}', ["/input/b"]),
    "a decomposed letter": (r'{"kind":"any","input":{"b":1,"a":"e\u0301"}}', ["/input/a"]),
    "a space more": (r'{"kind":"any","input":{"b":1,"a":"é "}}', ["/input/a"]),
    "a fraction more": (r'{"kind":"any","input":{"b":1.0000000000000002,"a":"é"}}', ["/input/b"]),
    "null for a member": (r'{"kind":"any","input":{"b":1,"a":null}}', ["/input/a"]),
    "a member less": (r'{"kind":"any","input":{"b":1}}', ["/input/a"]),
    "a member more, though null": (r'{"kind":"any","input":{"b":1,"a":"é","c":null}}', ["/input/c"]),
    "another case": (r'{"kind":"any","input":{"B":1,"a":"é"}}', ["/input/B", "/input/b"]),
    "a list for an object": (r'{"kind":"any","input":[["b",1],["a","é"]]}', ["/input"]),
    "another kind": (r'{"kind":"other","input":{"b":1,"a":"é"}}', ["/kind"]),
    "another queue": (r'{"kind":"any","input":{"b":1,"a":"é"},"queue":"slow"}', ["/queue"]),
    "another priority": (r'{"kind":"any","input":{"b":1,"a":"é"},"priority":1}', ["/priority"]),
    "a time": (r'{"kind":"any","input":{"b":1,"a":"é"},"run_at":"2027-01-01T00:00:00Z"}', ["/run_at"]),
    "a delay": (r'{"kind":"any","input":{"b":1,"a":"é"},"delay_seconds":60}', ["/delay_seconds"]),
    "a deadline": (r'{"kind":"any","input":{"b":1,"a":"é"},"deadline":"2027-01-01T00:00:00Z"}', ["/deadline"]),
    "another time-out": (r'{"kind":"any","input":{"b":1,"a":"é"},"timeout_seconds":1}', ["/timeout_seconds"]),
    "other retries": (r'{"kind":"any","input":{"b":1,"a":"é"},"max_retries":0}', ["/max_retries"]),
    "metadata": (r'{"kind":"any","input":{"b":1,"a":"é"},"metadata":{}}', ["/metadata"]),
}

EQUAL = (
    ("[1, 2.50, 0.1]", "[1.0,2.5,1e-1]"),
    ("9007199254740993", "9007199254740993"),
    ("1" + "0" * 22, "1e22"),
    ("0", "-0.0"),
    (r'"\ud83d\ude00\/"', '"😀/"'),
    ("{}", "{ }"),
)

UNEQUAL = (
    ("9007199254740992", "9007199254740993"),
    ("9007199254740993", "9007199254740992.0"),
    ("18446744073709551616", "18446744073709551617"),
    ("[1,2]", "[2,1]"),
    ("[]", "{}"),
    ('""', "null"),
    ("0", "false"),
    ("null", "[null]"),
    (r'"\\u00e9"', r'"\u00e9"'),
)

INSTANTS = (
    "2027-01-01T05:30:00+05:30",
    "2027-01-01T00:00:00Z",
    "2026-12-31t18:00:00.000-06:00",
    "2027-01-01T00:00:00-00:00",
)


@pytest.fixture
async def client(settings: Settings, db: Database) -> AsyncIterator[AsyncClient]:
    await kinds.publish(db, [replace(ANY, name="other")])
    async with listening(settings, db) as client:
        yield client


async def post(client: AsyncClient, key: str, body: str) -> Response:
    return await client.post("/v1/jobs", content=body.encode(), headers={"Idempotency-Key": key})


def of(value: str, **members: Any) -> str:
    more = "".join(f', "{name}": "{text}"' for name, text in members.items())
    return f'{{"kind": "any", "input": {value}{more}}}'


async def test_a_request_written_otherwise_is_the_same_request(client: AsyncClient, db: Database) -> None:
    """An honest repetition is refused because the bytes differ."""
    first = await post(client, "k", FIRST)
    for how, body in SAME.items():
        again = await post(client, "k", body)
        assert (how, again.status_code, again.json()) == (how, 200, first.json())
    for number, pair in enumerate(EQUAL):
        answers = [await post(client, f"equal-{number}", of(value)) for value in pair]
        assert [answer.status_code for answer in answers] == [202, 200], pair
    answers = [await post(client, "instant", of("1", run_at=at)) for at in INSTANTS]
    assert [answer.status_code for answer in answers] == [202, *[200] * (len(INSTANTS) - 1)]
    made = 2 + len(EQUAL)
    assert await counts(db) == (made, made, made)


async def test_a_request_with_another_meaning_is_a_conflict_and_leaves_the_job_as_it_was(
    client: AsyncClient, db: Database
) -> None:
    """Another order is silently answered with the old job."""
    first = (await post(client, "k", FIRST)).json()
    for how, (body, pointers) in OTHERS.items():
        refused = await post(client, "k", body)
        assert (how, refused.status_code, refused.json()["code"]) == (how, 409, "idempotency-key-reuse")
        assert (how, sorted(error["pointer"] for error in refused.json()["errors"])) == (how, pointers)
        assert refused.json()["job_id"] == first["id"]
    for number, pair in enumerate(UNEQUAL):
        answers = [await post(client, f"unequal-{number}", of(value)) for value in pair]
        assert [answer.status_code for answer in answers] == [202, 409], pair
    made = 1 + len(UNEQUAL)
    assert await counts(db) == (made, made, made)
    assert (await client.get(first["links"]["self"])).json() == first


async def test_a_key_finds_its_job_though_the_kind_has_other_defaults_now(client: AsyncClient, db: Database) -> None:
    """After a deploy every repetition under way is a conflict."""
    first = (await post(client, "k", FIRST)).json()
    await kinds.publish(db, [replace(ANY, version="2", defaults=Defaults(priority=1, max_retries=0, queue="new"))])
    assert (await client.get("/v1/kinds")).json()["data"][0]["version"] == "2"
    changed = (await post(client, "another", FIRST)).json()
    assert (changed["priority"], changed["queue"]) == (1, "new")
    for body in (FIRST, SAME["defaults written out"]):
        again = await post(client, "k", body)
        assert (again.status_code, again.json()) == (200, first)


async def test_two_callers_with_one_key_have_a_job_each(settings: Settings, db: Database) -> None:
    """A key chosen by one customer gives away the job of another."""
    await kinds.publish(db, [ANY])
    submitter = Submitter(db, Catalog(db), settings)
    request = JobRequest("any", {"b": 1})
    answers = [await submitter.submit(request, key="k", tenant=tenant) for tenant in ("a", "b", "a", "b")]
    assert [answer.replayed for answer in answers] == [False, False, True, True]
    ids = [answer.job.id for answer in answers]
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2
    await submitter.drain()
