"""Cancel reaches every form of a job that has not ended, and nothing that has."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from app.domain.errors import Refused
from app.domain.outcomes import Release
from app.store.audit import run_checks
from app.store.leases import Ended
from app.usecases.cancel import cancel
from tests.integration.world import World


async def test_a_waiting_job_is_cancelled_with_reason_and_actor(world: World) -> None:
    [job_id] = await world.submit()
    assert await cancel(world.db, job_id, reason="not needed", actor="ann")
    outcome = await world.row("outcomes", job_id)
    assert outcome is not None
    assert (outcome["state"], outcome["reason"], outcome["result"]) == ("cancelled", "not needed", None)
    assert await world.actions(job_id) == [("ann", "cancel", "not needed")]
    assert await run_checks(world.db) == []


async def test_a_cancelled_run_leaves_its_attempt_and_its_worker_can_write_nothing(world: World) -> None:
    [job] = await world.run()
    assert await cancel(world.db, job.id, reason=None, actor="ann")
    attempt = await world.row("attempts", job.id)
    assert attempt is not None
    assert (attempt["attempt"], attempt["end"], attempt["worker_id"]) == (1, "cancelled", world.worker_id)
    assert await world.finish([job]) == set()
    assert await run_checks(world.db) == []


async def test_a_second_cancel_says_that_there_was_a_first(world: World) -> None:
    [job_id] = await world.submit()
    assert await cancel(world.db, job_id, reason="first", actor="ann")
    assert not await cancel(world.db, job_id, reason="second", actor="bob")
    assert await world.actions(job_id) == [("ann", "cancel", "first")]


async def test_a_job_that_ended_otherwise_is_not_cancelled(world: World) -> None:
    done = await world.run()
    await world.finish(done)
    [dead] = await world.die()
    for job_id in (done[0].id, dead):
        with pytest.raises(Refused) as refused:
            await cancel(world.db, job_id, reason=None, actor="ann")
        assert (refused.value.code, refused.value.status) == ("job-terminal", 409)


async def test_a_job_nobody_submitted_is_not_found(world: World) -> None:
    with pytest.raises(Refused) as refused:
        await cancel(world.db, uuid4(), reason=None, actor="ann")
    assert (refused.value.code, refused.value.status) == ("job-not-found", 404)


async def test_a_job_that_keeps_moving_is_cancelled_all_the_same(world: World) -> None:
    """The job goes from outbox to lease and back without a pause; a cancel that looks once misses it."""
    ids = await world.submit(20)
    stop = asyncio.Event()

    async def move() -> None:
        while not stop.is_set():
            jobs = await world.claim(ids)
            await world.leases.release_if_leased([Ended(job.id, job.attempt, Release("moving")) for job in jobs])

    # Releases are capped; these jobs are made to move for as long as it takes.
    world.settings = world.settings.model_copy(update={"max_releases": 10_000})
    mover = asyncio.create_task(move())
    try:
        cancelled = await asyncio.gather(
            *(cancel(world.db, job_id, reason=None, actor="ann") for job_id in ids for _ in range(2))
        )
    finally:
        stop.set()
        await mover
    assert sum(cancelled) == len(ids)
    assert await world.claim(ids) == []
    assert await run_checks(world.db) == []


async def test_a_claim_that_holds_the_job_hides_it_from_one_look_but_not_from_cancel(world: World) -> None:
    """The claim has moved the job but not committed: the cancel waits for it and then finds it in neither home."""
    [job_id] = await world.submit()
    async with world.db.session() as connection:
        claim = connection.transaction()
        await claim.start()
        await connection.execute(
            "WITH moved AS (DELETE FROM outbox WHERE job_id = $1 RETURNING *) "
            "INSERT INTO leases (job_id, kind, queue, priority, worker_id, started_at, run_until, timeout_seconds, "
            "attempt, retries, max_retries, crashes, releases) "
            "SELECT job_id, kind, queue, priority, $2, now(), now() + interval '1 minute', timeout_seconds, 1, "
            "retries, max_retries, crashes, releases FROM moved",
            job_id,
            world.worker_id,
        )
        waiting = asyncio.create_task(cancel(world.db, job_id, reason=None, actor="ann"))
        await world.until_waiting_for_locks(1)
        await claim.commit()
    assert await waiting
    assert await world.row("leases", job_id) is None
    assert await run_checks(world.db) == []


async def test_cancel_and_finish_at_once_have_one_winner(world: World) -> None:
    jobs = await world.run(100)

    async def cancelled(job_id: UUID) -> bool:
        try:
            return await cancel(world.db, job_id, reason=None, actor="ann")
        except Refused:
            return False

    answers, finished = await asyncio.gather(
        asyncio.gather(*(cancelled(job.id) for job in jobs)),
        asyncio.gather(*(world.finish([job]) for job in jobs)),
    )
    assert [bool(done) != answer for done, answer in zip(finished, answers, strict=True)] == [True] * len(jobs)
    assert await run_checks(world.db) == []
