"""A submit puts one job on record before it is answered, whoever else submits at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx import AsyncClient

from app.coalesce import Coalescer
from app.domain.errors import Refused
from app.domain.request import JobRequest, key_digest
from app.settings import Settings
from app.store import jobs, kinds
from app.store.database import Database, connect
from app.store.jobs import Inserted, KeyTaken, NewJob
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitter
from tests.integration.listening import ANY, COUNTED, counts, listening

ROW = NewJob("default", "any", "default", 5, "1", None, 2, 60.0, None, None, None, None, None)


@pytest.fixture
async def client(settings: Settings, db: Database) -> AsyncIterator[AsyncClient]:
    async with listening(settings, db) as client:
        yield client


@pytest.fixture
async def submitter(settings: Settings, db: Database) -> AsyncIterator[Submitter]:
    await kinds.publish(db, [ANY, COUNTED])
    submitter = Submitter(db, Catalog(db), settings)
    yield submitter
    await submitter.drain()


async def post(client: AsyncClient, key: str | None = None, status: int = 202, **members: Any) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    body: dict[str, Any] = {"kind": "any", "input": {}, **members}
    answer = await client.post("/v1/jobs", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers.get("Idempotent-Replayed") == ("true" if status == 200 else None)
    return answer.json()


async def test_an_accepted_job_is_on_record_and_found_where_the_answer_says(client: AsyncClient, db: Database) -> None:
    answer = await client.post("/v1/jobs", json={"kind": "any", "input": {"b": 1, "a": 2}, "metadata": {"who": "me"}})
    assert answer.status_code == 202
    found = await client.get(answer.headers["Location"])
    assert found.json() == answer.json()
    assert found.json()["state"] == "queued"
    assert await counts(db) == (1, 1, 0)


async def test_what_the_caller_leaves_out_comes_from_the_kind(client: AsyncClient) -> None:
    job = await post(client, kind="counted", input={"n": 1})
    assert (job["queue"], job["priority"], job["timeout_seconds"], job["retries"]["max"]) == ("slow", 2, 7.0, 1)
    job = await post(client, kind="counted", input={"n": 1}, queue="q", priority=0, timeout_seconds=1.5, max_retries=0)
    assert (job["queue"], job["priority"], job["timeout_seconds"], job["retries"]["max"]) == ("q", 0, 1.5, 0)


async def test_a_job_with_a_time_waits_for_it_and_one_with_a_past_time_does_not(client: AsyncClient) -> None:
    assert (await post(client, delay_seconds=60))["state"] == "scheduled"
    later = await post(client, run_at="2027-01-01T05:30:00+05:30", deadline="2027-06-01T00:00:00Z")
    assert (later["state"], later["due_at"]) == ("scheduled", "2027-01-01T00:00:00.000000Z")
    assert later == await got(client, later)
    assert (await post(client, run_at="2001-01-01T00:00:00Z"))["state"] == "queued"


async def got(client: AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    return (await client.get(job["links"]["self"])).json()


async def test_fifty_posts_with_one_key_make_one_job_in_any_number_of_processes(
    settings: Settings, db: Database
) -> None:
    async with AsyncExitStack() as open_servers:
        clients = [await open_servers.enter_async_context(listening(settings, db)) for _ in range(2)]
        for made in range(1, 6):
            key, body = uuid4().hex, {"kind": "any", "input": {"round": made}}
            answers = await asyncio.gather(
                *(clients[n % 2].post("/v1/jobs", json=body, headers={"Idempotency-Key": key}) for n in range(50))
            )
            assert sorted({answer.status_code for answer in answers}) == [200, 202]
            assert [answer.status_code for answer in answers].count(202) == 1
            assert len({answer.json()["id"] for answer in answers}) == 1
            assert await counts(db) == (made, made, made)


async def test_a_key_that_another_transaction_holds_is_waited_for_and_taken_when_that_rolls_back(
    settings: Settings, db: Database, submitter: Submitter
) -> None:
    async with key_held(settings, key_digest("default", "k")):
        waiting = [asyncio.create_task(submitter.submit(JobRequest("any", 1), key="k")) for _ in range(5)]
        await until_blocked(db, 1)
    answers = await asyncio.gather(*waiting)
    assert len({answer.job.id for answer in answers}) == 1
    assert [answer.replayed for answer in answers].count(False) == 1
    assert await counts(db) == (1, 1, 1)


async def test_the_same_keys_in_opposite_orders_do_not_deadlock(settings: Settings, db: Database) -> None:
    low, middle, high = (ROW._replace(key=UUID(int=number), request=UUID(int=0)) for number in (1, 2, 3))
    async with key_held(settings, UUID(int=2)):
        both = [asyncio.create_task(jobs.insert(db, order)) for order in ([low, middle, high], [high, middle, low])]
        await until_blocked(db, 2)
    one, other = await asyncio.gather(*both)
    assert sorted(sum(answer is not None for answer in answers) for answers in (one, other)) == [0, 3]
    assert await counts(db) == (3, 3, 3)


@asynccontextmanager
async def key_held(settings: Settings, digest: UUID) -> AsyncIterator[None]:
    """Another process is about to commit this key, and then dies."""
    rival = await connect(settings, "rival")
    try:
        await rival.execute("BEGIN")
        await rival.execute("INSERT INTO idempotency_keys VALUES ($1, gen_random_uuid(), outlast_uuid_v7())", digest)
        yield
    finally:
        await rival.close()


async def until_blocked(db: Database, sessions: int) -> None:
    async with db.session() as connection:
        while await connection.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") < sessions:
            await asyncio.sleep(0.005)


async def test_the_same_request_written_otherwise_is_replayed_as_the_job_is_now(client: AsyncClient) -> None:
    made = await post(client, "k", input={"b": 1, "a": "é"}, delay_seconds=90)
    same: list[dict[str, Any]] = [
        {"input": {"a": "é", "b": 1.0}, "delay_seconds": 90.0},
        {"input": {"a": "é", "b": 1}, "delay_seconds": 90, "priority": 5, "queue": "default", "max_retries": 2},
        {"input": {"a": "é", "b": 1}, "delay_seconds": 90, "metadata": None, "deadline": None},
    ]
    for members in same:
        assert await post(client, "k", 200, **members) == made
    assert (await client.post(made["links"]["cancel"])).status_code == 200
    assert (await post(client, "k", 200, input={"b": 1, "a": "é"}, delay_seconds=90))["state"] == "cancelled"


async def test_another_request_under_the_key_is_a_conflict_that_names_what_differs(
    client: AsyncClient, db: Database
) -> None:
    made = await post(client, "k", input={"a": 1, "b": [1, 2]})
    refused = await post(client, "k", 409, input={"a": 1, "b": [2, 2]}, priority=1, delay_seconds=5)
    assert refused["code"] == "idempotency-key-reuse"
    assert refused["job_id"] == made["id"]
    assert [error["pointer"] for error in refused["errors"]] == ["/input/b/0", "/priority", "/delay_seconds"]
    assert await counts(db) == (1, 1, 1)


async def test_a_key_still_finds_its_job_when_the_kind_takes_such_input_no_longer(
    client: AsyncClient, db: Database
) -> None:
    made = await post(client, "k", kind="counted", input={"n": 1})
    await kinds.publish(db, [replace(COUNTED, input_schema={"type": "string"})])
    assert (await post(client, None, 422, kind="counted", input=[]))["code"] == "invalid-input"
    assert (await post(client, "k", 200, kind="counted", input={"n": 1}))["id"] == made["id"]


async def test_a_kind_is_known_as_soon_as_it_is_published_and_so_is_its_new_schema(
    client: AsyncClient, db: Database
) -> None:
    assert (await post(client, None, 422, kind="new"))["code"] == "unknown-kind"
    await kinds.publish(db, [replace(ANY, name="new", input_schema={"type": "string"})])
    assert (await post(client, None, 422, kind="new", input=1))["code"] == "invalid-input"
    await kinds.publish(db, [replace(ANY, name="new", version="2", input_schema={"type": "integer"})])
    await post(client, kind="new", input=1)
    listed = (await client.get("/v1/kinds")).json()["data"]
    assert [(kind["name"], kind["version"]) for kind in listed] == [("any", "1"), ("counted", "1"), ("new", "2")]
    assert listed[1]["input_schema"] == COUNTED.input_schema


async def test_a_schema_that_points_elsewhere_is_not_followed_and_refuses_nothing(
    client: AsyncClient, db: Database
) -> None:
    await kinds.publish(db, [replace(ANY, name="far", input_schema={"$ref": "http://127.0.0.1:9/schema"})])
    await post(client, kind="far", input={"anything": 1})


async def test_a_batch_answers_for_each_of_its_jobs(client: AsyncClient, db: Database) -> None:
    batch: list[object] = [
        {"kind": "any", "input": 1, "idempotency_key": "b"},
        {"kind": "any", "input": 1, "idempotency_key": "b"},
        {"kind": "any", "input": 2, "idempotency_key": "b"},
        {"kind": "nobody.knows", "input": 1},
        {"kind": "counted", "input": {"n": "x"}},
        {"kind": "any", "input": 1, "idempotency_key": "not one key"},
        {"kind": "any", "input": "\0"},
        "no object",
        {"kind": "any", "input": 3},
    ]
    answer = await client.post("/v1/jobs/batch", json={"jobs": batch})
    assert answer.status_code == 200
    outcomes = answer.json()["data"]
    assert [outcome["status"] for outcome in outcomes] == [202, 200, 409, 422, 422, 422, 422, 422, 202]
    assert outcomes[1]["replayed"]
    assert outcomes[0]["job"] == outcomes[1]["job"]
    assert [outcome["problem"]["errors"][0]["pointer"] for outcome in outcomes if "problem" in outcome] == [
        "/jobs/2/input",
        "/jobs/3/kind",
        "/jobs/4/input/n",
        "/jobs/5/idempotency_key",
        "/jobs/6/input",
        "/jobs/7",
    ]
    assert await counts(db) == (2, 2, 1)


async def test_a_batch_has_a_thousand_jobs_at_most(client: AsyncClient, db: Database) -> None:
    item = {"kind": "any", "input": 1}
    assert (await client.post("/v1/jobs/batch", json={"jobs": [item] * 1_001})).status_code == 422
    answer = await client.post("/v1/jobs/batch", json={"jobs": [item] * 1_000})
    assert {outcome["status"] for outcome in answer.json()["data"]} == {202}
    for body in ("{}", "[]", '{"jobs": 1}', '{"jobs": [], "more": 1}'):
        assert (await client.post("/v1/jobs/batch", content=body)).status_code == 422
    assert await counts(db) == (1_000, 1_000, 0)


async def test_a_value_that_cannot_be_stored_fails_its_own_caller_alone(db: Database, submitter: Submitter) -> None:
    coalescer: Coalescer[NewJob, Inserted | KeyTaken] = submitter._coalescer  # pyright: ignore[reportPrivateUsage]  # no request carries such
    answers = await asyncio.gather(
        *(coalescer.submit(new) for new in (ROW, ROW._replace(input="no JSON"), ROW)), return_exceptions=True
    )
    assert isinstance(answers[0], Inserted)
    assert isinstance(answers[1], Refused)
    assert isinstance(answers[2], Inserted)
    assert await counts(db) == (2, 2, 0)


async def test_a_caller_that_hangs_up_leaves_a_whole_job_or_none(client: AsyncClient, db: Database) -> None:
    keys = [f"cut-{n}" for n in range(60)]
    cut = 0
    for number, key in enumerate(keys):
        try:
            await asyncio.wait_for(post(client, key), number * 0.0003)
        except TimeoutError:
            cut += 1
    made, waiting, keyed = await counts(db)
    assert made == waiting == keyed
    assert cut > 0
    for key in keys:
        again = await client.post("/v1/jobs", json={"kind": "any", "input": {}}, headers={"Idempotency-Key": key})
        assert again.status_code in {200, 202}
    assert await counts(db) == (60, 60, 60)


async def test_workers_are_told_of_due_jobs_and_only_of_those(settings: Settings, submitter: Submitter) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    def hear(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        heard.put_nowait(str(payload))

    listener = await connect(settings, "test")
    try:
        await listener.add_listener("outlast_outbox", hear)
        await submitter.submit(JobRequest("any", 1, queue="later", delay_seconds=60))
        await submitter.submit(JobRequest("any", 1, queue="now"))
        assert await asyncio.wait_for(heard.get(), 10) == "now"
    finally:
        await listener.close()


async def test_times_are_the_databases(submitter: Submitter) -> None:
    job = (await submitter.submit(JobRequest("any", 1, delay_seconds=90.25))).job
    assert job.due_at is not None
    assert job.due_at - job.created_at == timedelta(seconds=90.25)
