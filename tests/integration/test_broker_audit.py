"""The audit names entries that stay at the broker for nobody, and no entry that somebody may still take away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from app.cli.exits import ExitCode
from app.cli.formats import Format
from app.settings import Settings
from app.store.audit import ALL
from app.store.fleet import Fleet
from app.transport import keys
from app.transport.connect import publisher, subscriber
from app.usecases.cancel import cancel
from tests.integration.raw_redis import RawRedis
from tests.integration.world import World
from workers import audit
from workers.broker_audit import broker_findings

STREAM = keys.stream("default")


@pytest.fixture
async def raw(settings: Settings) -> AsyncIterator[RawRedis]:
    redis = RawRedis(settings)
    yield redis
    await redis.close()


async def test_an_entry_delivered_to_nobody_is_found_and_one_in_passing_is_not(
    world: World, settings: Settings, raw: RawRedis
) -> None:
    [lost, passing] = await world.submit(2)
    entries = await _deliver(settings, world.worker_id, [lost, passing])
    assert await _found(world) == [], "pending for one who lives"
    await raw("XACK", STREAM, keys.GROUP, *entries)
    watch = asyncio.create_task(broker_findings(world.db, settings, watch_seconds=1))
    await asyncio.sleep(0.2)
    await raw("XDEL", STREAM, entries[1])
    [finding] = await watch
    assert (finding.check, finding.job_id) == ("broker", lost)
    assert finding.detail.endswith("was delivered and is pending for nobody")


@pytest.mark.parametrize("consumer", ["ghost", str(uuid4())], ids=["a name", "an id"])
async def test_an_entry_in_the_hands_of_a_stranger_is_found(world: World, raw: RawRedis, consumer: str) -> None:
    [job_id] = await world.submit()
    await _plant(raw, "job", str(job_id), "attempt", "0")
    await raw("XGROUP", "CREATE", STREAM, keys.GROUP, "0")
    await raw("XREADGROUP", "GROUP", keys.GROUP, consumer, "STREAMS", STREAM, ">")
    assert await _found(world) == [job_id]


async def test_what_a_worker_that_ended_had_in_hand_is_found_once_its_jobs_are_settled(
    world: World, settings: Settings
) -> None:
    [job_id] = await world.submit()
    await _deliver(settings, world.worker_id, [job_id])
    await Fleet(world.db).leave(world.worker_id, "killed by signal 9")
    assert await _found(world) == [], "its rescue is to come"
    await world.execute("UPDATE workers SET settled_at = heartbeat_at")
    assert await _found(world) == [job_id]


async def test_an_unread_entry_about_no_job_or_a_done_one_is_found_and_one_that_a_reader_drops_is_not(
    world: World, raw: RawRedis
) -> None:
    [waiting, cancelled] = await world.submit(2)
    await cancel(world.db, cancelled, reason=None, actor="ann")
    [done] = await world.run()
    await world.finish([done])
    nobody, named = uuid4(), uuid4()
    for job_id in (waiting, cancelled, done.id, nobody):
        await _plant(raw, "job", str(job_id), "attempt", "0")
    await _plant(raw, "payload", str(named))
    assert await _found(world) == [done.id, nobody, named]


async def test_an_entry_left_idle_is_found_while_a_worker_lives_who_would_reclaim_it(
    world: World, settings: Settings, raw: RawRedis
) -> None:
    [job_id] = await world.submit()
    frozen = uuid4()
    await world.execute(
        "INSERT INTO workers (id, role, host, pid, queues, kinds, slots, transport) "
        "VALUES ($1, 'worker', 'host', 1, '{default}', '{}', 1, 'redis')",
        frozen,
    )
    [entry] = await _deliver(settings, frozen, [job_id])
    assert await _found(world) == [], "not idle for long"
    await raw("XCLAIM", STREAM, keys.GROUP, str(frozen), 0, entry, "IDLE", 60_000, "JUSTID")
    await world.beat()
    assert await _found(world) == [job_id]
    await world.execute("UPDATE workers SET left_at = now()")
    assert await _found(world) == [], "nobody is there to reclaim it"


async def _found(world: World) -> list[UUID | None]:
    """The jobs of what looks stuck at this moment, oldest entry first."""
    return [finding.job_id for finding in await broker_findings(world.db, world.settings, watch_seconds=0)]


async def _plant(raw: RawRedis, *fields: str) -> None:
    await raw("XADD", STREAM, "*", *fields)


async def _deliver(settings: Settings, worker_id: UUID, ids: Sequence[UUID]) -> list[str]:
    """Publishes the jobs and hands them to a worker; the ids of the entries."""
    relay, consumer = publisher(settings), subscriber(settings, worker_id, ["default"])
    try:
        await relay.read_all("default", 10)
        published = await relay.publish("default", [(job_id, 0) for job_id in ids], 10)
        delivered = await consumer.read(10, 1)
        assert len(delivered) == len(ids)
        return [receipt for receipt in published.receipts if receipt is not None]
    finally:
        await consumer.close()
        await relay.close()


async def test_an_audit_that_cannot_ask_the_broker_says_so_whatever_the_record_holds(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    away = world.settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    [job_id] = await world.submit()
    assert await asyncio.to_thread(audit.run, away, Format.IDS, ALL) == ExitCode.DEPENDENCY_AWAY
    assert capsys.readouterr().out == ""
    await world.execute("DELETE FROM outbox")
    assert await asyncio.to_thread(audit.run, away, Format.IDS, ALL) == ExitCode.INVARIANT_BROKEN
    said = capsys.readouterr()
    assert said.out == f"{job_id}\n"
    assert "the broker (OUTLAST_REDIS_URL) does not answer" in said.err
