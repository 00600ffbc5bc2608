"""Old jobs leave by the week, and nothing that is still to be kept leaves with them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.domain.findings import Finding
from app.domain.states import Policy
from app.settings import Settings
from app.store import audit
from app.store.database import Database, connect
from app.store.effects import Effects
from app.store.retention import Bounds, Retention
from tests.integration.world import DIGEST, World
from workers.retirer import Retired, Retirer

WEEK = "2025w10"
HOMES = ("outbox", "leases", "dead_letters", "outcomes")
OWNED = ("effects", "attempts")

IDS_OF_THEN = """
CREATE OR REPLACE FUNCTION outlast_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT (substr(outlast_uuid_floor('2025-03-05 12:00Z')::text, 1, 14) || '7'
          || substr(gen_random_uuid()::text, 16))::uuid
$$
"""
LONG_DONE = "UPDATE outcomes SET finished_at = finished_at - interval '200 days' WHERE job_id = ANY ($1)"
LONG_DEAD = "UPDATE dead_letters SET died_at = died_at - interval '200 days' WHERE job_id = ANY ($1)"
KEY = "INSERT INTO idempotency_keys (digest, request_digest, job_id) VALUES (gen_random_uuid(), gen_random_uuid(), $1)"


@dataclass
class Past:
    """A week long ago with jobs in every state, those of `gone` beyond what is kept."""

    world: World
    retirer: Retirer
    gone: list[UUID]
    kept: dict[str, UUID]

    async def left(self, of: str = "jobs") -> set[UUID]:
        column = "id" if of == "jobs" else "job_id"
        async with self.world.db.session() as connection:
            return {row[0] for row in await connection.fetch(f"SELECT {column} FROM {of}")}

    async def value(self, query: str) -> object:
        async with self.world.db.session() as connection:
            return await connection.fetchval(query)

    async def audited(self) -> list[Finding]:
        return [one for check in audit.CHECKS for one in await audit.run_check(self.world.db, check)]


@pytest.fixture
async def past(world: World, settings: Settings, db: Database) -> Past:
    await world.execute(IDS_OF_THEN)
    await world.execute("SELECT outlast_make_partition(outlast_monday($1))", WEEK)
    effects = Effects(db, settings)
    old = await world.run(3)
    for job in old:
        await effects.intent(job.id, job.attempt, "one", Policy.REPEATABLE, DIGEST)
        await effects.record(job.id, job.attempt, "one", "1")
    await world.finish(old)
    expired = await world.die(2)
    recent = await world.run(1)
    await world.finish(recent)
    dead, doubtful = (await world.die())[0], await world.die_in_doubt()
    [waiting] = await world.submit()
    [running] = await world.run()
    await effects.intent(running.id, running.attempt, "one", Policy.REPEATABLE, DIGEST)
    gone = [job.id for job in old] + expired
    await world.execute(LONG_DONE, gone)
    await world.execute(LONG_DEAD, expired)
    kept = {"done": recent[0].id, "dead": dead, "doubtful": doubtful, "waiting": waiting, "running": running.id}
    for job_id in (*gone, *kept.values()):
        await world.execute(KEY, job_id)
    return Past(world, Retirer(settings, db), gone, kept)


async def test_what_is_old_goes_with_everything_it_owns_and_the_rest_stays_as_it_was(past: Past) -> None:
    rows = {(table, job): await past.world.row(table, job) for table in HOMES for job in past.kept.values()}

    assert await past.retirer.run_once() == Retired(1, 0)

    assert await past.left() == set(past.kept.values())
    assert await past.left("idempotency_keys") == set(past.kept.values())
    assert {(table, job): await past.world.row(table, job) for table, job in rows} == rows
    for table in (*HOMES, *OWNED):
        assert not await past.left(table) & set(past.gone)
    assert await past.left("effects") == {past.kept["running"], past.kept["doubtful"]}
    assert await past.left("attempts") == {past.kept["dead"], past.kept["doubtful"]}
    assert await past.value("SELECT count(*) FROM pg_class WHERE relname ~ '_(kept|retired)$'") == 0


async def test_the_audit_finds_nothing_afterwards(past: Past) -> None:
    await past.retirer.run_once()

    assert await past.audited() == []


async def test_a_week_that_was_just_looked_through_is_left_alone_and_an_emptied_one_is_gone(past: Past) -> None:
    await past.retirer.run_once()
    assert await past.retirer.run_once() == Retired(0, 0)
    await past.world.execute(f"COMMENT ON TABLE jobs_{WEEK} IS 'kept 2025-04-01 00:00Z'")
    await past.world.execute("DELETE FROM outbox; DELETE FROM leases; DELETE FROM dead_letters")
    await past.world.execute(LONG_DONE, list(past.kept.values()))

    assert await past.retirer.run_once() == Retired(1, 0)

    assert await past.left() == set()
    assert await past.value("SELECT count(*) FROM pg_inherits WHERE inhrelid::regclass::text LIKE '%2025w10'") == 0


async def test_what_happens_between_the_copy_and_the_exchange_is_not_lost(past: Past, settings: Settings) -> None:
    """A job runs on and ends, one is retried, cancelled, resolved; an expired dead letter is replayed and done."""
    world, effects = past.world, Effects(past.world.db, settings)
    now = datetime.now(UTC)
    bounds = Bounds(now - timedelta(days=30), now - timedelta(days=180))
    replayed = past.gone[-1]
    session = await connect(settings, "test retention")
    try:
        retention = Retention(session)
        assert await retention.copy(WEEK, bounds) == len(past.kept)
        assert await retention.drop_keys(WEEK) == len(past.gone)
        await effects.record(past.kept["running"], 1, "one", "2")
        [waiting] = await world.claim([past.kept["waiting"]])
        await world.finish([waiting])
        await world.execute(
            "UPDATE effects SET state = 'recorded', result = '3' WHERE job_id = $1", past.kept["doubtful"]
        )
        await world.execute(
            "WITH d AS (DELETE FROM dead_letters WHERE job_id = $1 RETURNING *) "
            "INSERT INTO outbox (job_id, kind, queue, priority, attempt, timeout_seconds, max_retries) "
            "SELECT job_id, kind, queue, priority, attempt, timeout_seconds, max_retries FROM d",
            replayed,
        )
        [again] = await world.claim([replayed])
        await world.finish([again])

        assert await retention.swap(WEEK, bounds) == len(past.kept) + 1
    finally:
        session.terminate()

    assert await past.left() == {*past.kept.values(), replayed}
    assert await past.left("outcomes") == {past.kept["done"], past.kept["waiting"], replayed}
    assert await past.value("SELECT array_agg(result::text ORDER BY result::text) FROM effects") == ["2", "3"]
    assert await past.audited() == []


async def test_who_holds_a_lock_on_jobs_is_not_waited_for(past: Past, settings: Settings) -> None:
    now = datetime.now(UTC)
    bounds = Bounds(now - timedelta(days=30), now - timedelta(days=180))
    session = await connect(settings, "test retention")
    try:
        retention = Retention(session)
        await retention.copy(WEEK, bounds)
        async with past.world.db.session() as reader, reader.transaction():
            await reader.fetch("SELECT id FROM jobs LIMIT 1")
            assert await asyncio.wait_for(retention.swap(WEEK, bounds), 5) is None
        assert await past.left() >= set(past.gone)
        assert await retention.swap(WEEK, bounds) == len(past.kept)
    finally:
        session.terminate()


async def test_an_exchange_that_takes_long_is_given_up_and_changes_nothing(
    past: Past, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    bounds = Bounds(now - timedelta(days=30), now - timedelta(days=180))
    session = await connect(settings, "test retention")
    try:
        retention = Retention(session)
        await retention.copy(WEEK, bounds)
        with monkeypatch.context() as patch:
            patch.setattr("app.store.retention.SWAP_SECONDS_MAX", 0.001, raising=False)
            assert await retention.swap(WEEK, bounds) is None
        assert await past.left() >= set(past.gone)
        assert await retention.swap(WEEK, bounds) == len(past.kept)
    finally:
        session.terminate()


async def test_a_run_that_died_half_way_is_done_by_the_next(past: Past, settings: Settings) -> None:
    now = datetime.now(UTC)
    bounds = Bounds(now - timedelta(days=30), now - timedelta(days=180))
    session = await connect(settings, "test retention")
    retention = Retention(session)
    await retention.copy(WEEK, bounds)
    session.terminate()
    assert await past.retirer.run_once() == Retired(1, 0)
    await past.world.execute("CREATE TABLE jobs_2025w09_retired (LIKE jobs)")
    await past.retirer.run_once()
    assert await past.value("SELECT to_regclass('jobs_2025w09_retired')") is None


async def test_one_at_a_time_retires(past: Past, settings: Settings) -> None:
    session = await connect(settings, "test retention")
    try:
        assert await Retention(session).alone()
        assert await past.retirer.run_once() == Retired(0, 0)
        assert await past.left() >= set(past.gone)
    finally:
        session.terminate()


async def test_jobs_of_a_week_that_nobody_had_made_move_into_it_once_it_is_made(world: World) -> None:
    await world.execute(IDS_OF_THEN)
    done = await world.run(2)
    await world.finish(done)
    async with world.db.session() as connection:
        assert await connection.fetchval("SELECT count(*) FROM jobs_default") == 2
        assert await connection.fetchval("SELECT outlast_make_partition(outlast_monday($1))", WEEK) == 4
        assert await connection.fetchval("SELECT count(*) FROM jobs_default") == 0
        assert await connection.fetchval(f"SELECT count(*) FROM jobs_{WEEK}") == 2
        assert await connection.fetchval(f"SELECT count(*) FROM outcomes_{WEEK}") == 2
