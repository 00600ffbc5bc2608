"""No body, header or path gets a 500: each is answered by a problem document, and good JSON comes back exactly."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient, Response

from app.settings import Settings
from app.store.database import Database
from tests.integration.listening import counts, listening, send_raw, stored


@pytest.fixture
async def client(settings: Settings, db: Database) -> AsyncIterator[AsyncClient]:
    async with listening(settings, db) as client:
        yield client


def problem(answer: Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of an answer, once it is a whole one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"], body["type"]) == (status, code, f"/problems/{code}")
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == answer.headers["X-Request-Id"]
    return body


def job(**members: object) -> str:
    return json.dumps({"kind": "any", "input": {}} | members)


HOSTILE: dict[str, tuple[str | bytes, str, str]] = {
    "nothing": ("", "invalid-json", ""),
    "no JSON": ("no JSON", "invalid-json", ""),
    "half a document": ('{"kind": "any"', "invalid-json", ""),
    "two documents": (job() + job(), "invalid-json", ""),
    "a list": ("[]", "invalid-request", ""),
    "a number": ("1", "invalid-request", ""),
    "not UTF-8": (b'{"kind": "any", "input": "\xff"}', "invalid-json", ""),
    "a surrogate in UTF-8": (b'{"kind": "any", "input": "\xed\xa0\x80"}', "invalid-json", ""),
    "UTF-16": (job().encode("utf-16"), "invalid-json", ""),
    "nested 100,000 deep": ('{"kind": "any", "input": ' + "[" * 100_000, "invalid-json", ""),
    "nested 101 deep": (job(input=0).replace("0", "[" * 101 + "]" * 101), "invalid-json", "/input" + "/0" * 100),
    "NaN": ('{"kind": "any", "input": NaN}', "invalid-json", "/input"),
    "NaN in a number of ours": ('{"kind": "any", "input": 1, "priority": NaN}', "invalid-json", "/priority"),
    "-Infinity": ('{"kind": "any", "input": {"a": -Infinity}}', "invalid-json", "/input/a"),
    "1e400": ('{"kind": "any", "input": {"a": [1e400]}}', "invalid-json", "/input/a/0"),
    "1e400 in a number of ours": ('{"kind": "any", "input": 1, "priority": 1e400}', "invalid-json", "/priority"),
    "U+0000": ('{"kind": "any", "input": {"a": "\\u0000"}}', "invalid-json", "/input/a"),
    "U+0000 in a key": ('{"kind": "any", "input": {"b": {"\\u0000": 1}}}', "invalid-json", "/input/b"),
    "U+0000 in a kind": ('{"kind": "a\\u0000", "input": 1}', "invalid-json", "/kind"),
    "a lone surrogate": ('{"kind": "any", "input": ["\\ud800"]}', "invalid-json", "/input/0"),
    "a lone surrogate in an unknown member": ('{"kind": "any", "input": 1, "\\udfff": 1}', "invalid-json", ""),
    "a lone surrogate far down": (
        '{"kind": "any", "input": {"a": [1, {"b": "x\\udc00"}]}}',
        "invalid-json",
        "/input/a/1/b",
    ),
    "5,000 digits": ('{"kind": "any", "input": ' + "1" * 5_000 + "}", "invalid-json", "/input"),
    "a time without a zone": (job(run_at="2031-01-01T12:00:00"), "invalid-request", "/run_at"),
    "a day that does not exist": (job(run_at="2031-02-30T12:00:00Z"), "invalid-request", "/run_at"),
    "beyond the horizon": (job(run_at="2999-01-01T12:00:00Z"), "invalid-request", "/run_at"),
    "a delay beyond the horizon": (job(delay_seconds=2**31), "invalid-request", "/delay_seconds"),
    "an unknown member": (job(payload=1), "invalid-request", "/payload"),
    "no kind": ('{"input": 1}', "invalid-request", "/kind"),
    "no input": ('{"kind": "any"}', "invalid-request", "/input"),
    "a kind that is no name": (job(kind="../etc"), "invalid-request", "/kind"),
    "a kind nobody published": (job(kind="nobody.knows"), "unknown-kind", "/kind"),
    "an input that does not fit": (job(kind="counted", input={"n": "x"}), "invalid-input", "/input/n"),
    "a number beyond its column": (job(priority=2**63), "invalid-request", "/priority"),
}


async def test_every_hostile_body_is_refused_and_nothing_is_stored(client: AsyncClient, db: Database) -> None:
    for name, (body, code, pointer) in HOSTILE.items():
        refused = problem(await client.post("/v1/jobs", content=body), 422, code)
        assert (name, refused["errors"][0]["pointer"]) == (name, pointer)
    assert await counts(db) == (0, 0, 0)


async def test_a_body_over_the_limit_is_refused_by_its_declared_length(client: AsyncClient) -> None:
    problem(await client.post("/v1/jobs", content=job(input="x" * 5_000_000)), 413, "body-too-large")
    head = "POST /v1/jobs HTTP/1.1\nHost: x\nContent-Length: 5000000"
    assert (await send_raw(client, head)).status == 413


async def test_a_body_of_undeclared_length_is_refused_at_the_limit(client: AsyncClient) -> None:
    head = "POST /v1/jobs HTTP/1.1\nHost: x\nTransfer-Encoding: chunked"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = await send_raw(client, head, *([chunk] * 17))
    assert (answer.status, answer.body["code"]) == (413, "body-too-large")


async def test_a_connection_goes_on_after_a_body_was_refused(client: AsyncClient) -> None:
    for _ in range(3):
        assert (await client.post("/v1/jobs", content=b"x" * 2_000_000)).status_code == 413
    assert (await client.post("/v1/jobs", content=job())).status_code == 202


async def test_an_idempotency_key_is_one_text_of_visible_ascii(client: AsyncClient) -> None:
    for keys in ([""], ["a b"], ["é"], ["x" * 256], ["a", "b"]):
        headers = [(b"Idempotency-Key", key.encode()) for key in keys]
        problem(await client.post("/v1/jobs", content=job(), headers=headers), 422, "invalid-idempotency-key")


async def test_bytes_that_are_not_http_are_a_problem_too(client: AsyncClient) -> None:
    for head in (
        "POST /v1/jobs HTTP/1.1\nHost: x\nIdempotency-Key: a\0b\nContent-Length: 0",
        "POST /v1/jobs HTTP/1.1\nHost: x\nContent-Length: -1",
        "GET /v1/jobs?kind=\xff HTTP/1.1\nHost: x",
        "\1\2\3",
    ):
        answer = await send_raw(client, head)
        assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json"), head
        assert (answer.body["type"], answer.body["request_id"]) == (
            "/problems/bad-request",
            answer.headers["x-request-id"],
        )


async def test_an_encoded_body_is_refused(client: AsyncClient) -> None:
    answer = await client.post("/v1/jobs", content=b"x", headers={"Content-Encoding": "gzip"})
    problem(answer, 415, "unsupported-media-type")


async def test_what_is_not_there_and_what_cannot_be_done_are_problems_too(client: AsyncClient) -> None:
    problem(await client.get("/v1/nothing"), 404, "not-found")
    problem(await client.get("/v1/jobs/%00"), 404, "job-not-found")
    problem(await client.get("/v1/jobs/not-an-id"), 404, "job-not-found")
    answer = await client.delete("/v1/jobs")
    problem(answer, 405, "method-not-allowed")
    assert answer.headers["Allow"] == "GET, POST"


async def test_a_request_id_is_taken_when_it_can_be_and_made_when_not(client: AsyncClient) -> None:
    taken = await client.get("/v1/nothing", headers={"X-Request-Id": "mine-1"})
    assert problem(taken, 404, "not-found")["request_id"] == "mine-1"
    made = await client.get("/v1/nothing", headers={"X-Request-Id": "no spaces"})
    assert len(problem(made, 404, "not-found")["request_id"]) == 32


KEPT = (
    "1" + "0" * 30,
    "9007199254740993",
    "-18446744073709551617",
    "9" * 4_300,
    '"\\\\u0000"',
    '"é 😀"',
    '{"z":1,"a":[true,null,-0.5,1e-7]}',
    "[" * 100 + "]" * 100,
)


async def test_json_we_keep_comes_back_digit_for_digit(client: AsyncClient, db: Database) -> None:
    for kept in KEPT:
        answer = await client.post("/v1/jobs", content=f'{{"kind": "any", "input": {kept}}}')
        assert answer.status_code == 202, answer.text
        job_id = answer.json()["id"]
        assert await stored(db, job_id) == kept
        assert f'"input":{kept},' in answer.text
        assert f'"input":{kept},' in (await client.get(f"/v1/jobs/{job_id}")).text
