"""Every transition of a leased job happens for the holder of the lease, and for nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from app.domain.leased import LeasedJob
from app.domain.outcomes import Bury, Done, Failure, Release, Retry
from app.domain.states import AttemptEnd, Home, Reason
from app.store.audit import conservation
from app.store.fleet import Fleet
from app.store.leases import Ended
from tests.integration.world import World

FAILURE = Failure("ValueError", "no", "f" * 16)
HOMES = [home.value for home in Home]

Ending = Callable[[World, Sequence[tuple[UUID, int]]], Awaitable[set[UUID]]]


async def finish(world: World, attempts: Sequence[tuple[UUID, int]]) -> set[UUID]:
    return await world.leases.finish_if_leased([Ended(*one, Done('{"n":1}')) for one in attempts])


async def retry(world: World, attempts: Sequence[tuple[UUID, int]]) -> set[UUID]:
    return await world.leases.retry_if_leased([Ended(*one, Retry(FAILURE, 5)) for one in attempts])


async def bury(world: World, attempts: Sequence[tuple[UUID, int]]) -> set[UUID]:
    return await world.leases.bury_if_leased([Ended(*one, Bury(Reason.PERMANENT_ERROR, FAILURE)) for one in attempts])


async def release(world: World, attempts: Sequence[tuple[UUID, int]]) -> set[UUID]:
    return await world.leases.release_if_leased([Ended(*one, Release("a test")) for one in attempts])


ENDINGS: dict[str, tuple[Ending, str]] = {
    "finish": (finish, "outcomes"),
    "retry": (retry, "outbox"),
    "bury": (bury, "dead_letters"),
    "release": (release, "outbox"),
}


async def homes(world: World, job_id: UUID) -> list[str]:
    return [home for home in HOMES if await world.row(home, job_id) is not None]


def attempt_of(job: LeasedJob) -> tuple[UUID, int]:
    return job.id, job.attempt


@pytest.mark.parametrize("name", ENDINGS)
async def test_the_holder_ends_its_attempt_once_and_the_job_moves_to_its_next_home(world: World, name: str) -> None:
    ending, home = ENDINGS[name]
    [job] = await world.run()

    assert await ending(world, [attempt_of(job)]) == {job.id}
    assert await homes(world, job.id) == [home]
    assert await ending(world, [attempt_of(job)]) == set(), "the same statement again moves nothing"
    assert await homes(world, job.id) == [home]
    assert await conservation(world.db) == []


@pytest.mark.parametrize("name", ENDINGS)
async def test_an_older_attempt_ends_nothing(world: World, name: str) -> None:
    ending, _ = ENDINGS[name]
    [first] = await world.run()
    await release(world, [attempt_of(first)])
    [second] = await world.claim([first.id])
    assert second.attempt == first.attempt + 1

    assert await ending(world, [attempt_of(first)]) == set()
    assert await homes(world, first.id) == ["leases"]


@pytest.mark.parametrize("name", ENDINGS)
async def test_without_a_lease_nothing_ends(world: World, name: str) -> None:
    ending, _ = ENDINGS[name]
    [job_id] = await world.submit()

    assert await ending(world, [(job_id, 0), (job_id, 1)]) == set()
    assert await homes(world, job_id) == ["outbox"]


async def test_a_batch_moves_those_that_are_mine_and_leaves_the_others(world: World) -> None:
    jobs = await world.run(3)
    stale = (jobs[1].id, jobs[1].attempt - 1)

    moved = await finish(world, [attempt_of(jobs[2]), stale, attempt_of(jobs[0])])

    assert moved == {jobs[0].id, jobs[2].id}
    assert await homes(world, jobs[1].id) == ["leases"]


async def test_a_retry_counts_against_the_budget_and_waits_for_its_time(world: World) -> None:
    [job] = await world.run()

    await retry(world, [attempt_of(job)])

    row = await world.row("outbox", job.id)
    assert row is not None
    assert (row["deferred"], row["retries"], row["crashes"], row["attempt"]) == (True, 1, 0, 1)
    assert (await world.claim([job.id])) == [], "not before it is due"


async def test_an_attempt_that_only_waited_for_a_quota_burns_no_retry(world: World) -> None:
    [job] = await world.run()

    throttled = Retry(FAILURE, 0, end=AttemptEnd.FAILED, charged=False)
    await world.leases.retry_if_leased([Ended(job.id, job.attempt, throttled)])

    row = await world.row("outbox", job.id)
    assert row is not None
    assert (row["retries"], row["releases"]) == (0, 1)


async def test_a_release_charges_nothing_until_the_cap_and_then_the_crash_budget(world: World) -> None:
    [job] = await world.run()
    await world.execute("UPDATE leases SET releases = $1", world.settings.max_releases)

    await release(world, [attempt_of(job)])

    row = await world.row("outbox", job.id)
    assert row is not None
    assert (row["retries"], row["crashes"], row["releases"]) == (0, 1, world.settings.max_releases + 1)

    await world.execute("UPDATE outbox SET crashes = $1, solo = false", world.settings.max_crashes - 1)
    [again] = await world.claim([job.id])
    await release(world, [attempt_of(again)])
    dead = await world.row("dead_letters", job.id)
    assert dead is not None
    assert dead["reason"] == "crashes_exhausted"


async def test_a_lost_reply_is_answered_by_the_row_that_owns_the_job(world: World) -> None:
    mine, not_mine = await world.run(2)
    await finish(world, [attempt_of(mine)])

    known = await world.leases.ended_by_attempt([attempt_of(mine), attempt_of(not_mine), (mine.id, 7)])

    assert known == {mine.id}


async def test_a_claim_takes_only_what_is_due_of_a_known_kind_before_its_deadline(world: World) -> None:
    due, later, late, foreign, solo = await world.submit(5)
    await world.execute(
        "UPDATE outbox SET due_at = now() + interval '1 hour', deferred = true WHERE job_id = $1", later
    )
    await world.execute("UPDATE outbox SET deadline = now() - interval '1 second' WHERE job_id = $1", late)
    await world.execute("UPDATE outbox SET kind = 'test.other' WHERE job_id = $1", foreign)
    await world.execute("UPDATE outbox SET solo = true WHERE job_id = $1", solo)

    claimed = await world.claim([due, later, late, foreign, solo])

    assert [job.id for job in claimed] == [due]
    assert claimed[0].attempt == 1


async def test_a_worker_whose_heartbeat_is_old_claims_nothing_and_is_told_why(world: World) -> None:
    [job_id] = await world.submit()
    await world.execute("UPDATE workers SET heartbeat_at = now() - interval '1 minute'")

    claimed = await world.leases.claim([job_id])

    assert (claimed.jobs, claimed.fresh) == ([], False)
    assert await homes(world, job_id) == ["outbox"]


async def test_a_worker_that_has_left_claims_nothing(world: World) -> None:
    [job_id] = await world.submit()
    await world.beat()
    await world.execute("UPDATE workers SET left_at = now()")

    assert not (await world.leases.claim([job_id])).fresh


async def test_claims_straight_from_the_outbox_go_by_priority_then_age(world: World) -> None:
    ids = await world.submit(4)
    await world.execute("UPDATE outbox SET priority = 0 WHERE job_id = $1", ids[3])
    await world.beat()

    claimed = await world.leases.claim_due("default", 2, kinds=["test.job"])

    assert sorted(job.id for job in claimed.jobs) == sorted([ids[0], ids[3]])


async def test_two_workers_claiming_the_same_jobs_share_them_out(world: World) -> None:
    ids = await world.submit(50)
    await world.beat()

    first, second = await asyncio.gather(world.leases.claim(ids), world.leases.claim(ids))

    taken = [job.id for job in (*first.jobs, *second.jobs)]
    assert len(taken) == len(set(taken))
    assert await conservation(world.db) == []


async def test_an_attempts_time_is_cut_by_the_deadline(world: World) -> None:
    free, bound = await world.submit(2)
    await world.execute("UPDATE outbox SET deadline = now() + interval '10 seconds' WHERE job_id = $1", bound)

    by_id: dict[UUID, Any] = {job.id: job for job in await world.claim([free, bound])}

    assert (by_id[free].run_seconds, by_id[free].deadline_binds) == (60, False)
    assert 9 < by_id[bound].run_seconds <= 10
    assert by_id[bound].deadline_binds


async def test_a_last_start_that_fails_and_is_tried_again_stays_alone(world: World) -> None:
    """Beside others it would lose the last crash it has to a neighbour that kills their worker."""
    first, last = await world.run(2)
    await world.execute("UPDATE leases SET crashes = $1 WHERE job_id = $2", world.settings.max_crashes - 1, last.id)

    await retry(world, [(first.id, first.attempt), (last.id, last.attempt)])

    rows = [await world.row("outbox", job.id) for job in (first, last)]
    assert [row["solo"] for row in rows if row is not None] == [False, True]


async def test_progress_waits_for_no_transaction_that_holds_the_lease(world: World) -> None:
    """A handler may show progress from inside its own transaction: waiting would be for itself."""
    [job] = await world.run()
    async with world.db.transaction() as mine:
        await mine.fetch("SELECT FROM leases FOR SHARE")
        await asyncio.wait_for(world.leases.progress_if_leased(job.id, job.attempt, "1"), 5)
    await world.leases.progress_if_leased(job.id, job.attempt, "2")

    row = await world.row("leases", job.id)
    assert row is not None
    assert row["progress"] == "2"


async def test_no_last_start_is_given_to_a_job_past_its_deadline(world: World) -> None:
    on_time, late = await world.submit(2)
    await world.execute("UPDATE outbox SET solo = true, deadline = now() + interval '1 minute'")
    await world.execute("UPDATE outbox SET deadline = now() WHERE job_id = $1", late)

    assert await Fleet(world.db).solo_waiting(world.worker_id, 10) == [on_time]
