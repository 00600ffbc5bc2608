"""One idempotency key is one job: however many send it, to however many processes, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.domain.request import key_digest
from app.settings import Settings
from app.store import kinds
from app.store.audit import conservation
from app.store.database import Database, connect
from tests.fundamentals.scale import scaled
from tests.integration.listening import ANY, counts, listening
from tests.processes import Process, Stack
from tests.scenarios.submit_gate import closed, end_session_at_gate, install, until_blocked

APIS = 3
CALLERS = 50
ROUNDS = scaled(4, 20)


class Front:
    """Several API processes over one database, or several servers of this process."""

    def __init__(self, clients: Sequence[httpx.AsyncClient]) -> None:
        self._clients = clients

    async def post(self, number: int, key: str, value: Any) -> httpx.Response:
        """A submit of one caller, at one of the processes."""
        client = self._clients[number % len(self._clients)]
        return await client.post("/v1/jobs", json={"kind": "any", "input": value}, headers={"Idempotency-Key": key})

    async def post_all(self, key: str, values: Sequence[Any]) -> list[httpx.Response]:
        return await asyncio.gather(*(self.post(number, key, value) for number, value in enumerate(values)))


@asynccontextmanager
async def processes(stack: Stack, db: Database) -> AsyncIterator[tuple[Front, list[Process]]]:
    """Three API processes, each with three connections; submits can be held before their commit."""
    await kinds.publish(db, [ANY])
    await install(db)
    started: list[Process] = []
    async with AsyncExitStack() as clients:
        opened: list[httpx.AsyncClient] = []
        for _ in range(APIS):
            started.append(await asyncio.to_thread(stack.api, env={"OUTLAST_DATABASE_POOL_MAX": "3"}))
            opened.append(await clients.enter_async_context(httpx.AsyncClient(base_url=stack.api_url, timeout=30)))
        yield Front(opened), started


def the_job(answers: Sequence[httpx.Response]) -> str:
    """The one job of these answers, made by exactly one of them."""
    assert Counter(answer.status_code for answer in answers) == {202: 1, 200: len(answers) - 1}
    [job_id] = {answer.json()["id"] for answer in answers}
    return job_id


async def test_fifty_callers_at_three_processes_make_one_job_whatever_becomes_of_the_first(
    stack: Stack, settings: Settings, db: Database
) -> None:
    """Two jobs for one key, or an error for the callers who came second."""
    jobs: set[str] = set()
    async with processes(stack, db) as (front, _):
        for _ in range(ROUNDS):
            jobs.add(the_job(await front.post_all(uuid4().hex, [{"order": 1}] * CALLERS)))
        jobs.add(await winner_held_before_its_commit(front, settings, db))
        jobs.add(await rival_that_rolls_back(front, settings, db))
        jobs.add(await winner_whose_session_is_ended(front, settings, db))
    total = ROUNDS + 3
    assert len(jobs) == total
    assert await counts(db) == (total, total, total)
    assert await conservation(db) == []


async def winner_held_before_its_commit(front: Front, settings: Settings, db: Database) -> str:
    """The others wait for it and get its job."""
    async with closed(settings):
        waiting = asyncio.create_task(front.post_all(uuid4().hex, [1] * CALLERS))
        await until_blocked(db, APIS)
        assert not waiting.done()
    return the_job(await waiting)


async def rival_that_rolls_back(front: Front, settings: Settings, db: Database) -> str:
    """Exactly one of those who waited for it wins."""
    key = uuid4().hex
    rival = await connect(settings, "rival")
    await rival.execute("BEGIN")
    digest = key_digest("default", key)
    await rival.execute("INSERT INTO idempotency_keys VALUES ($1, gen_random_uuid(), outlast_uuid_v7())", digest)
    waiting = asyncio.create_task(front.post_all(key, [1] * CALLERS))
    await until_blocked(db, APIS)
    await rival.close()
    return the_job(await waiting)


async def winner_whose_session_is_ended(front: Front, settings: Settings, db: Database) -> str:
    """Its own callers are told to come again, and find the job of whoever won instead."""
    key = uuid4().hex
    async with closed(settings):
        waiting = asyncio.create_task(front.post_all(key, [1] * CALLERS))
        await until_blocked(db, APIS)
        await end_session_at_gate(db)
    answers = await waiting
    assert {answer.status_code for answer in answers} <= {200, 202, 503}
    assert all("Retry-After" in answer.headers for answer in answers if answer.status_code == 503)
    again = await front.post_all(key, [1] * CALLERS)
    assert {answer.status_code for answer in again} == {200}
    [job_id] = {answer.json()["id"] for answer in [*answers, *again] if answer.is_success}
    return job_id


async def test_one_key_for_two_requests_at_once_is_one_job_and_a_conflict_for_the_other_request(
    settings: Settings, db: Database
) -> None:
    """The request that lost is answered with a job that it never asked for."""
    async with listening(settings, db) as one, listening(settings, db) as other:
        front = Front([one, other])
        for made in range(1, ROUNDS + 1):
            values = [{"order": number % 4 // 2} for number in range(CALLERS)]
            answers = await front.post_all(uuid4().hex, values)
            [winner] = [number for number, answer in enumerate(answers) if answer.status_code == 202]
            job_id = answers[winner].json()["id"]
            for value, answer in zip(values, answers, strict=True):
                if value == values[winner]:
                    assert (answer.is_success, answer.json()["id"]) == (True, job_id)
                else:
                    assert (answer.status_code, answer.json()["job_id"]) == (409, job_id)
                    assert [error["pointer"] for error in answer.json()["errors"]] == ["/input/order"]
            assert await counts(db) == (made, made, made)


async def test_a_key_whose_api_is_killed_in_mid_submit_makes_its_job_at_the_next_one(
    stack: Stack, settings: Settings, db: Database
) -> None:
    """A key left behind as "in progress" refuses every later submit, and there is no job for it."""
    async with processes(stack, db) as (front, [first, second, _]):
        # Between the insert of the key and the commit; sent again while the dead one's statement is still under way.
        key = uuid4().hex
        async with closed(settings):
            cut = asyncio.create_task(front.post(0, key, 1))
            await until_blocked(db, 1)
            await asyncio.to_thread(first.kill)
            again = asyncio.create_task(front.post(2, key, 1))
            await until_blocked(db, 2)
            assert await counts(db) == (0, 0, 0)
            await end_session_at_gate(db)
        assert (await again).status_code == 202
        await assert_cut(cut)

        # Between the commit and the answer.
        key = uuid4().hex
        async with closed(settings):
            cut = asyncio.create_task(front.post(1, key, 1))
            await until_blocked(db, 1)
            second.send(signal.SIGSTOP)
        await until_jobs(db, 2)
        await asyncio.to_thread(second.kill)
        again = asyncio.create_task(front.post(2, key, 1))
        assert (await again).status_code == 200
        await assert_cut(cut)
    assert await counts(db) == (2, 2, 2)
    assert await conservation(db) == []


async def assert_cut(call: asyncio.Task[httpx.Response]) -> None:
    with pytest.raises(httpx.TransportError):
        await call


async def until_jobs(db: Database, count: int) -> None:
    async with asyncio.timeout(20):
        while (await counts(db))[0] < count:
            await asyncio.sleep(0.01)
