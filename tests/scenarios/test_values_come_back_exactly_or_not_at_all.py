"""A value is kept digit for digit or refused where it comes in; none is a 500 or keeps a job from its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import httpx
import pytest

from app.settings import Settings
from app.store.database import Database
from tests.handlers.values import RAISED, RETURNED
from tests.integration.listening import counts, listening, send_raw
from tests.integration.shell import Ran, Shell
from tests.scenarios.premises import Premises

HANDLERS = ["tests.handlers.values"]
ENDED = ("done", "dead", "cancelled")
FAR = (-1, 2**31, 2**63, 2**64 + 1, 1e20, 1e300)
FAR_TEXT = ("-1", "0", "2147483648", "9223372036854775808", "1e20", "NaN", "1.5", "", "%00", "%D9%A1")

KEPT = (
    "9007199254740993",
    "9223372036854775808",
    "-18446744073709551617",
    "123456789012345678901234567890",
    "9" * 4_300,
    r'"\\u0000 \\ud800"',
    '"e\u0301 é 😀 \u202e"',
    '{"z":1,"a":[true,null,-0.5,1e-7],"":{"":[]}}',
    "[" * 100 + "]" * 100,
)

REFUSED = {
    "NaN": ("NaN", "/input"),
    "Infinity": ('{"a":[1,Infinity]}', "/input/a/1"),
    "-Infinity": ("-Infinity", "/input"),
    "1e400": ("1e400", "/input"),
    "-1e400 far down": ('[{"a":-1e400}]', "/input/0/a"),
    "NUL": (r'"a\u0000b"', "/input"),
    "NUL in a key": (r'{"a":{"b\u0000":1}}', "/input/a"),
    "a lone surrogate": (r'["\ud800"]', "/input/0"),
    "a lone second half": (r'"\udc00\ud800"', "/input"),
    "4,301 digits": ("1" * 4_301, "/input"),
    "5,000 digits below zero": ("-" + "1" * 5_000, "/input"),
}


def ended(premises: Premises, kind: str, value: Any) -> dict[str, Any]:
    """The job of this kind with this input, once it has ended."""
    return premises.client.wait_for(premises.client.submit(kind, value), *ENDED, seconds=60)


def shell(premises: Premises, *words: str) -> Ran:
    return asyncio.run(Shell(premises.settings)(*words))


def strictly(text: str) -> Any:
    """Parsed as RFC 8259 has it."""

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_digits_and_text_come_back_exactly_through_api_handler_and_command_line(premises: Premises) -> None:
    """2^53 + 1 comes back as 2^53, and a long number as an error."""
    premises.worker(HANDLERS)
    http = premises.client.http
    for kept in KEPT:
        answer = http.post("/v1/jobs", content=f'{{"kind":"value.echo","input":{kept}}}'.encode())
        assert answer.status_code == 202, answer.text
        job_id = answer.json()["id"]
        premises.client.wait_for(job_id, "done", seconds=60)
        shown = http.get(f"/v1/jobs/{job_id}").text
        assert f'"input":{kept},' in shown
        assert f'"result":{kept},' in shown
        assert http.get(f"/v1/jobs/{job_id}/result").text == kept
        assert (
            f'"result": {kept}' in shell(premises, "job", "show", job_id, "-o", "json").out
            or kept in shell(premises, "job", "show", job_id, "-o", "jsonl").out
        )


def test_what_a_handler_returns_or_raises_ends_its_job_at_once_and_every_answer_stays_readable(
    premises: Premises,
) -> None:
    """A finished job whose result or error cannot be stored never ends, or poisons every list that holds it."""
    premises.worker(HANDLERS)
    dead = [ended(premises, "value.return", {"how": how}) for how in RETURNED]
    assert [(job["reason"], job["attempt"], job["result"]) for job in dead] == [("invalid_output", 1, None)] * len(dead)
    recorded = [ended(premises, "value.record", {"how": how}) for how in RETURNED]
    assert [(job["reason"], job["attempt"]) for job in recorded] == [("permanent_error", 1)] * len(recorded)
    raised = {how: ended(premises, "value.raise", {"how": how}) for how in RAISED}
    assert {job["reason"] for job in raised.values()} == {"permanent_error"}
    assert raised["a NUL"]["error"]["message"] == "before\ufffdafter"
    assert raised["a lone surrogate"]["error"]["message"] == "before\ufffdafter"
    told = [ended(premises, "value.progress", {"how": how}) for how in RAISED]
    assert [job["result"] for job in told] == ["told"] * len(told)

    everything = [*dead, *recorded, *raised.values(), *told]
    for job in everything:
        for path in ("", "/timeline", "/effects", "/explanation"):
            answer = premises.client.http.get(f"/v1/jobs/{job['id']}{path}")
            assert answer.status_code == 200, answer.text
            strictly(answer.text)
    for path in ("/v1/jobs?limit=200", "/v1/dead-letters?limit=200"):
        listed = premises.client.http.get(path)
        assert len(strictly(listed.text)["data"]) >= len(dead) + len(recorded) + len(raised)
    assert premises.client.http.get("/metrics").status_code == 200
    for words in (("job", "list"), ("dead", "list"), ("dead", "groups")):
        ran = shell(premises, *words, "-o", "json")
        assert ran.code == 0
        strictly(ran.out)
    for job in (raised["a NUL"], raised["bytes that are no UTF-8"], raised["control characters"]):
        table = shell(premises, "dead", "show", job["id"])
        assert table.code == 0
        assert "\x1b" not in table.out
        assert "before" in table.out or "caf" in table.out


@pytest.fixture
async def client(settings: Settings, db: Database) -> AsyncIterator[httpx.AsyncClient]:
    async with listening(settings, db) as client:
        yield client


async def test_what_cannot_be_kept_is_refused_by_its_place_and_nothing_is_stored(
    client: httpx.AsyncClient, db: Database
) -> None:
    """An input that is valid for the reader and not for the database is a 500, or so is the refusal that echoes it."""
    for how, (value, pointer) in REFUSED.items():
        for body, place in (
            (f'{{"kind":"any","input":{value}}}', pointer),
            (f'{{"kind":"any","input":1,"metadata":{{"m":{value}}}}}', pointer.replace("/input", "/metadata/m", 1)),
            (f'{{"kind":"any","input":1,"priority":{value}}}', pointer.replace("/input", "/priority", 1)),
            (f'{{"kind":"any","input":1,"run_at":{value}}}', pointer.replace("/input", "/run_at", 1)),
            (f'{{"kind":{value},"input":1}}', pointer.replace("/input", "/kind", 1)),
        ):
            refused = await client.post("/v1/jobs", content=body.encode())
            assert (how, refused.status_code) == (how, 422), refused.text
            assert (how, strictly(refused.text)["errors"][0]["pointer"]) == (how, place)
    batch = [f'{{"kind":"any","input":{value}}}' for value, _ in REFUSED.values() if "e400" not in value]
    answer = await client.post("/v1/jobs/batch", content=f'{{"jobs":[{",".join(batch)}]}}'.encode())
    assert answer.status_code == 422, answer.text
    assert await counts(db) == (0, 0, 0)


async def test_text_beside_the_body_is_refused_or_kept_too(client: httpx.AsyncClient) -> None:
    """A NUL in a header, a filter or a reason reaches the database, which has no word for it but an error."""
    job = (await client.post("/v1/jobs", json={"kind": "any", "input": 1})).json()
    for head in ("Idempotency-Key: a\0b", "Idempotency-Key: a\x7fb"):
        raw = await send_raw(client, f"POST /v1/jobs HTTP/1.1\nHost: x\n{head}\nContent-Length: 0")
        assert raw.status in {400, 422}
    for query in ("kind=%00", "kind=a%00", "queue=%ed%a0%80", "state=%00", "cursor=%00", "cursor=%ff", "since=%00"):
        for path in ("/v1/jobs", "/v1/dead-letters"):
            assert (await client.get(f"{path}?{query}")).status_code == 422, (path, query)
    for reason in (r"\u0000", r"\ud800"):
        for action in ("cancel", "replay"):
            where = f"/v1/jobs/{job['id']}/cancel" if action == "cancel" else f"/v1/dead-letters/{job['id']}/replay"
            refused = await client.post(where, content=f'{{"reason":"a{reason}"}}'.encode())
            assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/reason"), refused.text
    assert (await client.get(job["links"]["self"])).json() == job


async def test_a_number_beyond_its_range_is_a_refusal_wherever_it_stands(client: httpx.AsyncClient) -> None:
    """A driver's range check comes after ours and is answered with a 500."""
    members = ("priority", "max_retries", "timeout_seconds", "delay_seconds")
    for member in members:
        for number in FAR:
            answer = await client.post("/v1/jobs", json={"kind": "any", "input": 1, member: number})
            assert (member, number, answer.status_code) == (member, number, 422), answer.text
            assert answer.json()["errors"][0]["pointer"] == f"/{member}"
    for path in ("/v1/jobs", "/v1/dead-letters"):
        for text in FAR_TEXT:
            answer = await client.get(f"{path}?limit={text}")
            assert (text, answer.status_code) == (text, 422), answer.text
        for text in ("-1", "9" * 200, "9" * 201, "1e20", "null", "[]", "AAAA"):
            assert (await client.get(f"{path}?cursor={text}")).status_code == 422
    for job_id in ("0", "-1", str(2**63), str(2**128), "1e20", "x" * 5_000, "%2e%2e", "%ff", "f" * 32, "%D9%A3" * 32):
        for path in ("", "/result", "/timeline", "/effects", "/explanation"):
            assert (await client.get(f"/v1/jobs/{job_id}{path}")).status_code == 404, job_id
        assert (await client.post(f"/v1/jobs/{job_id}/cancel")).status_code == 404
    for wait in ("-1", str(2**63), "1e20", "NaN", "\u0663"):
        answer = await client.get("/v1/jobs", headers={b"Prefer": f"wait={wait}".encode()})
        assert answer.status_code == 200
    assert (await client.get("/v1/jobs")).json() == {"data": [], "next_cursor": None}
