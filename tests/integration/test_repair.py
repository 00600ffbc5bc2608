"""A repair mends what can be mended without guessing, says who and why, and takes nothing from anybody at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID, uuid4

import pytest

from app.domain.findings import LEFT_ALONE
from app.domain.outcomes import Release
from app.domain.states import Policy, State
from app.settings import Settings
from app.store import fleet
from app.store.audit import CHECKS, run_checks
from app.store.database import connect
from app.store.effects import Effects
from app.store.fleet import Suspect
from app.store.leases import Ended
from app.store.repairs import MENDING, Repairs
from app.transport import keys
from app.usecases import read
from app.usecases.cancel import cancel
from app.usecases.replay import replay
from tests.integration.raw_redis import RawRedis
from tests.integration.shell import Shell
from tests.integration.test_audit import EFFECT, OUTCOME
from tests.integration.world import DIGEST, World

STREAM = keys.stream("default")
REPAIR = ("audit", "--repair", "--yes", "--reason", "found by hand", "--actor", "ann")


@pytest.fixture
async def raw(settings: Settings) -> AsyncIterator[RawRedis]:
    redis = RawRedis(settings)
    yield redis
    await redis.close()


async def mends(world: World, outlast: Shell, job_id: UUID | None = None) -> None:
    """One repair mends it all and is on record; a second one finds nothing."""
    dry = await outlast("audit", "--repair", "--dry-run", "-o", "json")
    assert (dry.code, dry.json()["ok"]) == (8, False)
    ran = await outlast(*REPAIR, "-o", "json")
    assert (ran.code, ran.json()["left"]) == (0, [])
    assert ran.json()["mended"]
    assert all(one in dry.json()["mended"] for one in ran.json()["mended"]), "a dry run says what is done then"
    assert await run_checks(world.db) == []
    if job_id is not None:
        assert ("ann", "repair", "found by hand") in await world.actions(job_id)
    again = await outlast(*REPAIR, "-o", "json")
    assert (again.code, again.json()) == (0, {"ok": True, "mended": [], "left": []})


async def test_a_job_without_a_home_becomes_a_dead_letter_that_can_be_replayed(world: World, outlast: Shell) -> None:
    [job] = await world.run()
    await world.leases.release_if_leased([Ended(job.id, job.attempt, Release("test"))])
    [job] = await world.claim([job.id])
    await Effects(world.db, world.settings).intent(job.id, job.attempt, "mail", Policy.REPEATABLE, DIGEST)
    await world.execute("DELETE FROM leases")
    await mends(world, outlast, job.id)
    dead = await read.job(world.db, job.id)
    assert (dead.state, dead.reason, dead.attempt) == (State.DEAD, "effect_unknown", job.attempt)
    assert await world.finish([job]) == set(), "the attempt that was under way writes nothing"
    await replay(world.db, [job.id], replay_id="again", reason="nothing was sent", actor="ann")
    [next_one] = await world.claim([job.id])
    assert next_one.attempt == job.attempt + 1
    await world.finish([next_one])
    assert await run_checks(world.db) == []


async def test_a_cancelled_job_without_a_home_is_cancelled_again(world: World, outlast: Shell) -> None:
    [job] = await world.run()
    await cancel(world.db, job.id, reason=None, actor="bob")
    await world.execute("DELETE FROM outcomes")
    await mends(world, outlast, job.id)
    assert (await read.job(world.db, job.id)).state is State.CANCELLED


@pytest.mark.parametrize("home", ["outbox", "dead_letters"])
async def test_beside_an_outcome_no_other_home_remains(world: World, outlast: Shell, home: str) -> None:
    [job_id] = await (world.submit() if home == "outbox" else world.die())
    if home == "dead_letters":
        await world.execute("DELETE FROM attempts")
    await world.execute(OUTCOME, job_id)
    await mends(world, outlast, job_id)
    assert (await read.job(world.db, job_id)).state is State.DONE


@pytest.mark.parametrize("home", ["outbox", "dead_letters", "outcomes"])
async def test_a_home_without_its_job_goes_into_the_action(world: World, outlast: Shell, home: str) -> None:
    [job_id] = await (world.die() if home == "dead_letters" else world.submit())
    if home == "outcomes":
        job_id = uuid4()
        await world.execute(OUTCOME, job_id)
    else:
        await world.execute("DELETE FROM jobs")
    await mends(world, outlast, job_id)
    async with world.db.session() as connection:
        kept = await connection.fetchval(
            "SELECT string_agg(details ->> 'row', '') FROM operator_actions WHERE job_id = $1", job_id
        )
    assert str(job_id) in kept


async def test_what_belongs_to_no_job_goes_and_a_key_can_be_used_again(world: World, outlast: Shell) -> None:
    await world.run()
    key = uuid4()
    await world.execute(EFFECT.format(job="gen_random_uuid()", attempt="attempt", worker="worker_id"))
    await world.execute("INSERT INTO attempts (job_id, attempt, \"end\") SELECT gen_random_uuid(), 1, 'lost'")
    await world.execute("INSERT INTO idempotency_keys SELECT $1, gen_random_uuid(), gen_random_uuid()", key)
    await mends(world, outlast)
    async with world.db.session() as connection:
        assert await connection.fetchval("SELECT count(*) FROM idempotency_keys WHERE digest = $1", key) == 0


@pytest.mark.parametrize(
    "breaking",
    ["DELETE FROM workers", "UPDATE workers SET left_at = now(), settled_at = heartbeat_at"],
    ids=["nobody knows", "settled"],
)
async def test_a_lease_that_no_rescue_would_see_is_left_to_the_rescue(
    world: World, outlast: Shell, breaking: str
) -> None:
    jobs = await world.run(2)
    await world.execute(breaking)
    await mends(world, outlast, jobs[0].id)
    watch = await connect(world.settings, "test watch")
    try:
        [seen] = await fleet.observed(watch)
        assert (seen.id, seen.gone) == (world.worker_id, True)
        suspect = Suspect(seen.id, seen.heartbeat_at, need_lock=False)
        rescued = await fleet.rescue(watch, world.settings, [suspect], uuid4())
        assert {one.job_id for one in rescued} == {job.id for job in jobs}
    finally:
        watch.terminate()
    assert await run_checks(world.db) == []


async def test_entries_for_nobody_are_taken_out_and_one_that_a_worker_holds_is_left(
    world: World, outlast: Shell, raw: RawRedis
) -> None:
    await raw("XGROUP", "CREATE", STREAM, keys.GROUP, "0", "MKSTREAM")
    for consumer in ("ghost", str(uuid4()), str(world.worker_id)):
        await raw("XADD", STREAM, "*", "job", str(uuid4()), "attempt", "0")
        await raw("XREADGROUP", "GROUP", keys.GROUP, consumer, "STREAMS", STREAM, ">")
    unowned = await raw("XADD", STREAM, "*", "job", str(uuid4()), "attempt", "0")
    await raw("XREADGROUP", "GROUP", keys.GROUP, "ghost", "STREAMS", STREAM, ">")
    await raw("XACK", STREAM, keys.GROUP, unowned)
    await raw("XADD", STREAM, "*", "job", str(uuid4()), "attempt", "0")
    await raw("XADD", STREAM, "*", "job", "nonsense")
    assert await raw("XLEN", STREAM) == 6
    await mends(world, outlast)
    assert await raw("XLEN", STREAM) == 1
    [[consumer, _]] = (await raw("XPENDING", STREAM, keys.GROUP))[3]
    assert consumer == str(world.worker_id)


async def test_what_would_be_guessing_is_left_with_a_word_of_what_to_do(world: World, outlast: Shell) -> None:
    [mended] = await world.submit()
    await world.execute("DELETE FROM outbox")
    [left] = await world.run()
    await world.execute("UPDATE leases SET retries = 3")
    ran = await outlast(*REPAIR, "-o", "json")
    assert ran.code == 6
    assert [one["job_id"] for one in ran.json()["mended"]] == [str(mended)]
    assert [(one["job_id"], one["check"], one["what_to_do"]) for one in ran.json()["left"]] == [
        (str(left.id), "budgets", LEFT_ALONE["budgets"])
    ]
    assert (await outlast(*REPAIR)).code == 8, "nothing could be mended"
    assert set(LEFT_ALONE) == {*CHECKS, "broker"}


async def test_a_lease_beside_an_outcome_is_left_to_its_holder(world: World, outlast: Shell) -> None:
    [job] = await world.run()
    await world.execute(OUTCOME, job.id)
    assert (await outlast(*REPAIR)).code == 8
    assert await world.row("leases", job.id) is not None
    assert await world.actions(job.id) == []


async def test_a_repair_wants_a_reason_and_a_yes(world: World, outlast: Shell) -> None:
    await world.submit()
    await world.execute("DELETE FROM outbox")
    assert (await outlast("audit", "--repair", "--yes")).code == 2
    assert (await outlast("audit", "--repair", "--reason", "found by hand")).code == 2
    assert (await outlast(*REPAIR, "--watch")).code == 2
    assert len(await run_checks(world.db)) == 1, "nothing was changed"


async def test_a_repair_beside_moving_jobs_takes_nothing_from_them(world: World) -> None:
    ids = await world.submit(100)
    moving = asyncio.create_task(_run_through(world, ids))
    repairs = Repairs(world.db, "a test", "ann")
    looks = 0
    while not moving.done():
        for check in MENDING:
            assert await repairs.mend(check, ids[looks % len(ids)]) == []
        looks += 1
    await moving
    assert looks > 10
    assert await run_checks(world.db) == []


async def _run_through(world: World, ids: Sequence[UUID]) -> None:
    """Every job is released some times, then finished, a few at a time; each move takes all that it is given."""
    for start in range(0, len(ids), 10):
        batch = ids[start : start + 10]
        for _ in range(10):
            held = await world.claim(batch)
            released = await world.leases.release_if_leased(
                [Ended(job.id, job.attempt, Release("moving")) for job in held]
            )
            assert released == set(batch)
        assert await world.finish(await world.claim(batch)) == set(batch)
