"""The audit names every job whose record is broken, and nothing that is merely in motion."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from app.domain.outcomes import Release
from app.domain.states import Policy
from app.store.audit import conservation, run_checks
from app.store.effects import Effects
from app.store.leases import Ended
from app.store.operations import retry_if_in_budget
from app.usecases.cancel import cancel
from app.usecases.discard import discard
from app.usecases.replay import replay
from tests.integration.each_state import lose
from tests.integration.world import DIGEST, World

OUTCOME = (
    "INSERT INTO outcomes (job_id, kind, queue, state, result, attempt, retries, crashes, releases) "
    "VALUES ($1, 'test.job', 'default', 'done', '1', 1, 0, 0, 0)"
)

EFFECT = (
    "INSERT INTO effects (job_id, key, attempt, worker_id, policy, args_digest, state) "
    "SELECT {job}, 'mail', {attempt}, {worker}, 'repeatable', '', 'intent' FROM leases"
)
ACTION = (
    "INSERT INTO operator_actions (actor, action, job_id, details) "
    "SELECT 'ann', '{action}', job_id, json_build_object('replay_id', 'again') FROM leases"
)
CANCELLED = (
    "WITH gone AS (DELETE FROM dead_letters RETURNING *) "
    "INSERT INTO outcomes (job_id, kind, queue, state, attempt, retries, crashes, releases) "
    "SELECT job_id, kind, queue, 'cancelled', attempt, retries, crashes, releases FROM gone"
)


async def found(world: World) -> list[tuple[str, UUID | None]]:
    return [(one.check, one.job_id) for one in await run_checks(world.db)]


async def test_jobs_in_every_state_are_whole(world: World) -> None:
    await world.submit(3)
    await world.run(3)
    await world.finish(await world.run(3))
    await world.die(3)
    await cancel(world.db, (await world.submit())[0], reason=None, actor="ann")
    await cancel(world.db, (await world.run())[0].id, reason=None, actor="ann")
    assert await found(world) == []


async def test_a_job_without_a_home_is_named(world: World) -> None:
    [job_id, _] = await world.submit(2)
    await world.execute("DELETE FROM outbox WHERE job_id = $1", job_id)
    [finding] = await conservation(world.db)
    assert (finding.job_id, finding.detail) == (job_id, "a job without a home")


async def test_a_job_with_two_homes_is_named_with_both(world: World) -> None:
    [job_id, _] = await world.submit(2)
    await world.execute(OUTCOME, job_id)
    [finding] = await conservation(world.db)
    assert (finding.job_id, finding.detail) == (job_id, "a job with 2 homes: outbox, outcomes")


async def test_a_home_without_its_job_is_named(world: World) -> None:
    job_id = uuid4()
    await world.execute(OUTCOME, job_id)
    [finding] = await conservation(world.db)
    assert (finding.job_id, finding.detail) == (job_id, "no job, but a row in outcomes")


@pytest.mark.parametrize(
    ("check", "breaking"),
    [
        ("leases", "UPDATE leases SET worker_id = gen_random_uuid()"),
        ("leases", "UPDATE workers SET left_at = now(), settled_at = heartbeat_at"),
        ("attempts", "UPDATE leases SET attempt = 7"),
        ("attempts", "INSERT INTO attempts (job_id, attempt, \"end\") SELECT job_id, attempt, 'lost' FROM leases"),
        ("budgets", "UPDATE leases SET retries = 3, attempt = 9"),
        ("budgets", "UPDATE leases SET crashes = 1"),
        ("endings", "UPDATE dead_letters SET error = 'null'"),
        ("orphans", "INSERT INTO attempts (job_id, attempt, \"end\") SELECT gen_random_uuid(), 1, 'lost'"),
        ("orphans", "INSERT INTO idempotency_keys SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid()"),
        ("orphans", EFFECT.format(job="gen_random_uuid()", attempt="attempt", worker="worker_id")),
        ("effects", EFFECT.format(job="job_id", attempt="attempt + 1", worker="worker_id")),
        ("effects", EFFECT.format(job="job_id", attempt="attempt", worker="gen_random_uuid()")),
        ("actions", "INSERT INTO replay_items SELECT 'again', job_id FROM dead_letters"),
        ("actions", ACTION.format(action="replay")),
        ("actions", ACTION.format(action="cancel")),
        ("actions", ACTION.format(action="discard")),
        ("actions", CANCELLED),
    ],
)
async def test_each_invariant_is_checked(world: World, check: str, breaking: str) -> None:
    await world.run()
    await world.die()
    await world.execute(breaking)
    assert check in {name for name, _ in await found(world)}


async def test_an_audit_since_a_time_looks_at_no_job_before_it(world: World) -> None:
    [before] = await world.submit()
    await asyncio.sleep(0.01)
    [after] = await world.submit()
    await world.execute("DELETE FROM outbox")
    assert [one.job_id for one in await run_checks(world.db)] == [before, after]
    assert [one.job_id for one in await run_checks(world.db, after)] == [after]


async def test_what_the_audit_reads_of_replays_and_effects_is_what_they_write(world: World) -> None:
    [job_id] = await world.die()
    await replay(world.db, [job_id], replay_id="again", reason="fixed", actor="ann")
    [job] = await world.claim([job_id])
    effects = Effects(world.db, world.settings)
    await effects.intent(job.id, job.attempt, "mail", Policy.REPEATABLE, DIGEST)
    assert await found(world) == []
    await effects.record(job.id, job.attempt, "mail", "1")
    await world.finish([job])
    [other] = await world.die()
    await discard(world.db, [other], reason="no use", actor="ann")
    assert await found(world) == []


async def test_a_callers_retry_after_the_last_crash_is_charged_on_top(world: World) -> None:
    [job_id] = await world.submit()
    for start in range(world.settings.max_crashes):
        await world.execute("UPDATE outbox SET due_at = now()")
        await lose(world, "default", [job_id], solo=start == world.settings.max_crashes - 1)
    assert await retry_if_in_budget(world.db, job_id, None, "ann", world.settings.max_crashes) == "default"
    assert await found(world) == []


async def test_an_audit_beside_moving_jobs_finds_nothing(world: World) -> None:
    ids = await world.submit(200)
    moving = asyncio.create_task(_run_through(world, ids))
    audits = 0
    while not moving.done():
        assert await found(world) == []
        audits += 1
    await moving
    assert audits > 1


async def _run_through(world: World, ids: Sequence[UUID]) -> None:
    """Every job is released once, then finished or buried, a few at a time."""
    for start in range(0, len(ids), 10):
        batch = ids[start : start + 10]
        released = await world.claim(batch)
        await world.leases.release_if_leased([Ended(job.id, job.attempt, Release("moving")) for job in released])
        jobs = await world.claim(batch)
        await world.finish(jobs[::2])
        await world.bury(jobs[1::2])
