"""Callers that hold the line: what the process does with them when it ends, or when there are too many."""

from __future__ import annotations

import asyncio
import signal

import httpx
import pytest

from app.api import waiting as module
from app.api.waiting import Waiting
from app.store.database import Database
from tests.integration.world import World
from tests.processes import Stack

WAIT_SECONDS = 40


async def test_a_stopping_api_answers_those_who_wait_instead_of_cutting_them_off(world: World, stack: Stack) -> None:
    [job_id] = await world.submit()
    api = await asyncio.to_thread(stack.api)
    async with httpx.AsyncClient(base_url=stack.api_url, timeout=WAIT_SECONDS) as client:
        asked = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", headers={"Prefer": f"wait={WAIT_SECONDS}"}))
        assert not (await asyncio.wait({asked}, timeout=0.5))[0]
        api.send(signal.SIGTERM)
        answer = await asyncio.wait_for(asked, WAIT_SECONDS / 4)
    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    assert await asyncio.to_thread(api.wait, WAIT_SECONDS / 4) == 0


async def test_one_look_serves_every_waiting_caller(world: World) -> None:
    jobs = await world.run(3)
    waiting = Waiting(world.db)
    callers = [asyncio.create_task(waiting.until_settled(job.id, WAIT_SECONDS)) for job in jobs for _ in range(2)]
    await world.finish(jobs[:2])
    done, pending = await asyncio.wait(callers, timeout=1)
    assert ({task.result() for task in done}, len(done), len(pending)) == ({True}, 4, 2)
    await waiting.close()
    assert await asyncio.gather(*pending) == [True, True]


async def test_the_poller_ends_with_the_last_caller(world: World) -> None:
    [job_id] = await world.submit()
    waiting = Waiting(world.db)
    assert await waiting.until_settled(job_id, 0.1)
    async with asyncio.timeout(WAIT_SECONDS):
        while any(task.get_name() == "waiting" for task in asyncio.all_tasks()):
            await asyncio.sleep(0)
    assert await waiting.run_once() == 0


async def test_one_caller_too_many_is_not_kept(db: Database, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITERS_MAX", 1)
    [job_id] = await world.submit()
    waiting = Waiting(db)
    first = asyncio.create_task(waiting.until_settled(job_id, WAIT_SECONDS))
    await asyncio.sleep(0)
    assert not await waiting.until_settled(job_id, WAIT_SECONDS)
    await waiting.close()
    assert await first
    assert not await waiting.until_settled(job_id, WAIT_SECONDS)
