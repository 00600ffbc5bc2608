"""A caller's retry draws on the budget the job was submitted with."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from app.domain.errors import Refused
from app.domain.states import Reason
from app.store.audit import run_checks
from app.usecases.retry import retry
from tests.integration.world import World


async def again(world: World, job_id: UUID) -> str:
    """`retried`, or the code of the refusal."""
    try:
        await retry(world.db, world.settings, job_id, reason=None, actor="api")
    except Refused as refused:
        return refused.code
    return "retried"


async def test_a_retry_is_charged_and_the_budget_ends(world: World) -> None:
    [job_id] = await world.die(max_retries=2)
    answers: list[str] = []
    for _ in range(3):
        answers.append(await again(world, job_id))
        await world.bury(await world.claim([job_id]))
    assert answers == ["retried", "retried", "retry-budget-exhausted"]
    row = await world.row("dead_letters", job_id)
    assert row is not None
    assert (row["attempt"], row["retries"]) == (3, 2)
    assert await world.actions(job_id) == [("api", "retry", None)] * 2
    assert await run_checks(world.db) == []


async def test_many_retries_at_once_are_one_retry(world: World) -> None:
    [job_id] = await world.die(max_retries=5)
    answers = await asyncio.gather(*(again(world, job_id) for _ in range(8)))
    assert sorted(answers) == ["job-not-dead"] * 7 + ["retried"]


async def test_crashes_stay_charged_and_the_last_start_is_alone(world: World) -> None:
    [job_id] = await world.die(reason=Reason.CRASHES_EXHAUSTED)
    await world.execute("UPDATE dead_letters SET crashes = 3 WHERE job_id = $1", job_id)
    assert await again(world, job_id) == "retried"
    row = await world.row("outbox", job_id)
    assert row is not None
    assert (row["crashes"], row["solo"], row["retries"]) == (3, True, 1)


async def test_a_kind_nobody_knew_costs_no_retry(world: World) -> None:
    [job_id] = await world.die(reason=Reason.UNKNOWN_KIND, max_retries=0)
    assert await again(world, job_id) == "retried"
    row = await world.row("outbox", job_id)
    assert row is not None
    assert row["retries"] == 0


async def test_what_cannot_be_retried_says_why(world: World) -> None:
    [waiting] = await world.submit()
    done = await world.run()
    await world.finish(done)
    [expired] = await world.die(reason=Reason.EXPIRED)
    await world.execute("UPDATE dead_letters SET deadline = now() WHERE job_id = $1", expired)
    asked = [waiting, done[0].id, expired, await world.die_in_doubt(), uuid4()]
    assert [await again(world, job_id) for job_id in asked] == [
        "job-not-dead",
        "job-terminal",
        "deadline-passed",
        "effect-unknown",
        "job-not-found",
    ]


async def test_a_retry_rings_the_doorbell_of_its_queue(world: World) -> None:
    [job_id] = await world.die()
    rung: asyncio.Queue[object] = asyncio.Queue()

    def heard(*message: object) -> None:
        rung.put_nowait(message[-1])

    await world.session.add_listener("outlast_outbox", heard)
    await again(world, job_id)
    assert await asyncio.wait_for(rung.get(), 10) == "default"


async def test_refused_settles_nothing(world: World) -> None:
    [job_id] = await world.die(max_retries=0)
    with pytest.raises(Refused):
        await retry(world.db, world.settings, job_id, reason=None, actor="api")
    assert await world.row("dead_letters", job_id) is not None
    assert await world.actions(job_id) == []
