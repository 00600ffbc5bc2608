"""`outlast audit --watch`: a line when findings change, and an end that says whether there ever were any."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable

import pytest

from tests.integration.world import World
from tests.processes import Process, Stack, wait_until

WATCH = ("audit", "--watch", "--interval", "0.1", "-o", "jsonl")


async def until(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, 30, what=what)


async def end(watch: Process, number: signal.Signals) -> int:
    watch.send(number)
    return await asyncio.to_thread(watch.wait)


async def test_a_watch_tells_each_finding_once_and_when_it_is_gone(world: World, stack: Stack) -> None:
    [job_id] = await world.submit()
    watch = stack.start(*WATCH)
    await world.execute("CREATE TABLE kept AS SELECT * FROM outbox")
    await world.execute("DELETE FROM outbox")
    await until(lambda: "found" in watch.stdout, "the finding")
    await world.execute("INSERT INTO outbox SELECT * FROM kept")
    await until(lambda: "gone" in watch.stdout, "its end")
    assert await end(watch, signal.SIGINT) == 8, "something was found"
    told = [json.loads(line) for line in watch.stdout.splitlines()]
    assert [(one["event"], one["check"], one["job_id"]) for one in told] == [
        ("found", "conservation", str(job_id)),
        ("gone", "conservation", str(job_id)),
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_watch_that_found_nothing_is_merely_interrupted(
    world: World, stack: Stack, number: signal.Signals
) -> None:
    await world.submit()
    watch = stack.start(*WATCH)

    async def looks() -> int:
        async with world.db.session() as connection:
            return await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outlast audit'"
            )

    while not await looks():
        assert watch.alive(), watch.log_tail()
        await asyncio.sleep(0.05)
    assert await end(watch, number) == 130
    assert watch.stdout == ""


async def test_a_watch_goes_on_when_the_server_comes_back(world: World, stack: Stack) -> None:
    [job_id] = await world.submit()
    watch = stack.start(*WATCH)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outlast audit'"
    for _ in range(5):
        await world.execute(cut)
        await asyncio.sleep(0.05)
    await world.execute("DELETE FROM outbox")
    await until(lambda: str(job_id) in watch.stdout, "the finding")
    assert await end(watch, signal.SIGINT) == 8
