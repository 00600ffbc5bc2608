"""Jobs are taken back from processes that are seen to be dead, and from nobody else."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store import fleet
from app.store.audit import conservation
from app.store.database import Database, connect, sql
from app.store.fleet import Suspect
from tests.integration.world import KIND, World
from workers.rescuer import Rescuer


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Watch:
    rescuer: Rescuer
    clock: Clock = field(default_factory=Clock)


@pytest.fixture
async def watch(settings: Settings):
    clock = Clock()
    rescuer = Rescuer(settings, uuid4(), clock=clock)
    yield Watch(rescuer, clock)
    await rescuer.close()


async def free_the_lock(world: World) -> None:
    """Ends the heartbeat session, as the server sees it when the process is killed."""
    lock_key = await lock_key_of(world)
    world.session.terminate()
    async with world.db.session() as connection:
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1, $2)", fleet.LOCK_CLASS, lock_key):
            await asyncio.sleep(0.01)
        await connection.execute("SELECT pg_advisory_unlock_all()")


async def lock_key_of(world: World) -> int:
    async with world.db.session() as connection:
        return await connection.fetchval("SELECT lock_key FROM workers WHERE id = $1", world.worker_id)


async def test_a_process_whose_end_was_told_is_rescued_at_once_and_the_cause_is_kept(
    world: World, watch: Watch
) -> None:
    [job] = await world.run()
    await fleet.Fleet(world.db).leave(world.worker_id, "killed by signal 9, 42 MiB at most")

    [rescued] = await watch.rescuer.run_once()

    assert (rescued.job_id, rescued.dead) == (job.id, False)
    row = await world.row("outbox", job.id)
    assert row is not None
    assert (row["attempt"], row["crashes"], row["retries"], row["deferred"]) == (1, 1, 0, False)
    ended = await world.row("attempts", job.id)
    assert ended is not None
    assert (ended["end"], ended["cause"]) == ("lost", "killed by signal 9, 42 MiB at most")
    assert await conservation(world.db) == []
    assert await watch.rescuer.run_once() == []


async def test_whoever_tells_an_end_learns_how_many_jobs_are_charged_for_it(world: World) -> None:
    await world.run(2)
    tell = fleet.Fleet(world.db).leave
    assert await tell(world.worker_id, "killed by signal 9") == 2
    assert await tell(world.worker_id, "killed by signal 9") == 0, "it has been told"


async def test_a_silent_process_with_a_free_lock_is_dead_after_the_grace_and_not_before(
    world: World, watch: Watch, settings: Settings
) -> None:
    [job] = await world.run()
    await free_the_lock(world)

    assert await watch.rescuer.run_once() == []
    watch.clock.now += settings.suspect_seconds * 0.9
    assert await watch.rescuer.run_once() == []
    watch.clock.now += settings.suspect_seconds * 0.2

    assert [one.job_id for one in await watch.rescuer.run_once()] == [job.id]


async def test_a_silent_process_that_still_holds_its_lock_keeps_its_jobs_for_a_lease(
    world: World, watch: Watch, settings: Settings
) -> None:
    [job] = await world.run()

    await watch.rescuer.run_once()
    watch.clock.now += settings.lease_seconds * 0.9
    assert await watch.rescuer.run_once() == []
    watch.clock.now += settings.lease_seconds * 0.2

    assert [one.job_id for one in await watch.rescuer.run_once()] == [job.id]


async def test_a_heartbeat_starts_the_watch_anew(world: World, watch: Watch, settings: Settings) -> None:
    await world.run()
    await watch.rescuer.run_once()
    for _ in range(5):
        watch.clock.now += settings.lease_seconds * 0.9
        await world.beat()
        assert await watch.rescuer.run_once() == []


async def test_a_broken_session_forgets_what_it_saw(world: World, watch: Watch, settings: Settings) -> None:
    await world.run()
    await free_the_lock(world)
    await watch.rescuer.run_once()
    watch.clock.now += settings.lease_seconds * 2

    await world.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'outlast rescuer'"
    )
    with suppress(DatabaseAway):  # the end of the session is noticed by the statement, or before it
        assert await watch.rescuer.run_once() == []

    assert await watch.rescuer.run_once() == [], "everything old it meets now may have a reason to be old"
    watch.clock.now += settings.suspect_seconds * 1.1
    assert len(await watch.rescuer.run_once()) == 1


async def test_a_suspicion_is_void_when_the_heart_has_beaten_since(world: World, settings: Settings) -> None:
    await world.run()
    [seen] = [one for one in await fleet.observed(world.session) if one.id == world.worker_id]
    await world.beat()

    suspects = [Suspect(seen.id, seen.heartbeat_at, need_lock=False)]
    assert await fleet.rescue(world.session, settings, suspects, uuid4()) == []


async def test_a_process_taken_for_dead_that_comes_back_and_leaves_is_settled_once_more(
    world: World, watch: Watch, settings: Settings
) -> None:
    await world.run()
    await watch.rescuer.run_once()
    watch.clock.now += settings.lease_seconds * 1.1
    assert len(await watch.rescuer.run_once()) == 1
    await world.beat()
    [job] = await world.run()

    await fleet.Fleet(world.db).leave(world.worker_id, "killed by signal 9")

    assert job.id in [one.job_id for one in await watch.rescuer.run_once()]


async def test_nobody_rescues_itself(world: World, settings: Settings) -> None:
    await world.run()
    [seen] = await fleet.observed(world.session)

    suspects = [Suspect(seen.id, seen.heartbeat_at, need_lock=False)]
    assert await fleet.rescue(world.session, settings, suspects, world.worker_id) == []


@pytest.mark.parametrize("statement", ["claim", "claim_due"])
async def test_a_claim_in_flight_does_not_escape_the_rescue(world: World, settings: Settings, statement: str) -> None:
    """The rescue waits for the claim's lock on the worker's row, and then sees the lease."""
    [job_id] = await world.submit()
    await world.beat()
    [seen] = await fleet.observed(world.session)
    grace = settings.suspect_seconds
    wanted: dict[str, tuple[object, ...]] = {
        "claim": ([job_id], world.worker_id, [KIND], grace, grace, False),
        "claim_due": ("default", world.worker_id, [KIND], grace, grace, 1, 0.0),
    }
    claim = await connect(settings, "a claim in flight")
    rescuing = await connect(settings, "a rescue")
    try:
        async with claim.transaction():
            assert len(await claim.fetch(sql(statement), *wanted[statement])) == 1
            suspects = [Suspect(seen.id, seen.heartbeat_at, need_lock=False)]
            rescue = asyncio.create_task(fleet.rescue(rescuing, settings, suspects, uuid4()))
            await asyncio.wait_for(world.until_waiting_for_locks(1), 10)
        assert [one.job_id for one in await rescue] == [job_id]
    finally:
        claim.terminate()
        rescuing.terminate()
    assert await conservation(world.db) == []


async def test_a_lease_that_an_open_transaction_holds_keeps_no_other_job_from_its_rescue(
    world: World, watch: Watch
) -> None:
    held, free = await world.run(2)
    await fleet.Fleet(world.db).leave(world.worker_id, "killed by signal 9")

    async with world.db.transaction() as frozen:
        await frozen.fetch("SELECT FROM leases WHERE job_id = $1 FOR SHARE", held.id)
        assert [one.job_id for one in await watch.rescuer.run_once()] == [free.id]
        assert await watch.rescuer.run_once() == []

    assert [one.job_id for one in await watch.rescuer.run_once()] == [held.id]
    assert await conservation(world.db) == []


async def test_the_first_crash_costs_no_time_a_later_one_backs_off_and_the_last_start_is_alone(
    world: World, watch: Watch
) -> None:
    first, second = await world.run(2)
    await world.execute("UPDATE leases SET crashes = 1 WHERE job_id = $1", second.id)
    await fleet.Fleet(world.db).leave(world.worker_id, "killed by signal 9")

    await watch.rescuer.run_once()

    fresh, marked = await world.row("outbox", first.id), await world.row("outbox", second.id)
    assert fresh is not None
    assert marked is not None
    assert (fresh["crashes"], fresh["deferred"], fresh["solo"]) == (1, False, False)
    assert (marked["crashes"], marked["deferred"], marked["solo"]) == (2, True, True)


async def test_a_job_whose_last_start_crashes_is_dead_and_says_so(
    world: World, watch: Watch, settings: Settings
) -> None:
    [job] = await world.run()
    await world.execute("UPDATE leases SET crashes = $1", settings.max_crashes - 1)
    await fleet.Fleet(world.db).leave(world.worker_id, "killed by signal 9")

    [rescued] = await watch.rescuer.run_once()

    assert rescued.dead
    dead = await world.row("dead_letters", job.id)
    assert dead is not None
    assert (dead["reason"], dead["crashes"]) == ("crashes_exhausted", settings.max_crashes)
    assert "killed by signal 9" in dead["error"]


async def test_a_last_start_that_ran_far_past_its_time_is_alone_again(
    world: World, watch: Watch, settings: Settings
) -> None:
    [job] = await world.run()
    await world.execute(
        "UPDATE leases SET run_until = now() - interval '1 second', crashes = $1", settings.max_crashes - 1
    )

    await watch.rescuer.run_once()

    row = await world.row("outbox", job.id)
    assert row is not None
    assert row["solo"]


async def test_an_attempt_that_ran_far_past_its_time_is_taken_from_a_living_worker(
    world: World, watch: Watch, db: Database
) -> None:
    spent, fresh = await world.run(2, max_retries=1)
    await world.execute("UPDATE leases SET run_until = now() - interval '1 second'")
    await world.execute("UPDATE leases SET retries = 1 WHERE job_id = $1", spent.id)

    assert {one.job_id: one.dead for one in await watch.rescuer.run_once()} == {spent.id: True, fresh.id: False}

    dead, again = await world.row("dead_letters", spent.id), await world.row("outbox", fresh.id)
    assert dead is not None
    assert again is not None
    assert dead["reason"] == "timed_out"
    assert (again["retries"], again["crashes"]) == (1, 0)
    assert await conservation(db) == []
