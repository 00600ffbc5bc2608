"""Endings reach PostgreSQL first and the broker after, whatever is in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import pytest

from app.domain.outcomes import Bury, Done, Failure, Gone, Outcome, Release, Retry
from app.domain.states import Reason
from app.settings import Settings
from app.store.audit import conservation
from app.store.database import Connection
from app.transport.base import Publisher, Subscriber
from app.transport.connect import publisher, subscriber
from tests.integration.world import World
from workers.finisher import Finisher
from workers.heart import Heart
from workers.runs import Run, Runs

QUEUE = "default"
FAILURE = Failure("ValueError", "no", "f" * 16)
CUT_WHO_WAITS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def show_nothing(_job: UUID, _attempt: int, _text: str) -> None:
    return None


@dataclass
class Desk:
    """A finisher at work on jobs that came through Redis."""

    world: World
    finisher: Finisher
    runs: Runs
    out: Publisher
    into: Subscriber

    async def deliver(self, count: int = 1) -> list[Run]:
        """Jobs of this worker's, with their entries pending for it."""
        ids = await self.world.submit(count)
        await self.into.read(1, 0.01)
        rows = [(job_id, 0) for job_id in ids]
        await self.out.read_all(QUEUE, 100)
        await self.out.publish(QUEUE, rows, 100)
        deliveries = {delivery.job_id: delivery for delivery in await self.into.read(count, 5)}
        jobs = await self.world.claim(ids)
        runs = [Run(job, deliveries[job.id], cast("Heart", None), show_nothing) for job in jobs]
        for run in runs:
            self.runs.add(run)
        return runs

    @asynccontextmanager
    async def held_up(self, run: Run) -> AsyncIterator[Connection]:
        """Its ending waits, ready to be written, for a lock of this session; it is written when this ends."""
        async with self.world.db.transaction() as blocker:
            await blocker.fetch("SELECT FROM leases FOR UPDATE")
            self.finisher.put(run, Done("1"))
            writing = asyncio.create_task(self.finisher.run_once())
            await self.world.until_waiting_for_locks(1)
            yield blocker
        await writing

    async def entries(self) -> int:
        return len(await self.out.inspect(QUEUE, 100))


@pytest.fixture
async def desk(world: World, settings: Settings) -> AsyncIterator[Desk]:
    into, out = subscriber(settings, world.worker_id, [QUEUE]), publisher(settings)
    runs = Runs(10, lambda: 0)
    yield Desk(world, Finisher(world.leases, runs, into), runs, out, into)
    await into.close()
    await out.close()


async def test_an_entry_is_acknowledged_only_after_the_commit(desk: Desk) -> None:
    [run] = await desk.deliver()
    async with desk.held_up(run):
        assert await desk.finisher.acknowledge_once() == 0
        assert await desk.entries() == 1

    assert await desk.finisher.acknowledge_once() == 1
    assert await desk.entries() == 0


async def test_endings_of_every_kind_go_out_together(desk: Desk) -> None:
    runs = await desk.deliver(5)
    endings: list[Outcome] = [Done("1"), Retry(FAILURE, 1), Bury(Reason.PERMANENT_ERROR, FAILURE), Release("x"), Gone()]
    for run, ending in zip(runs, endings, strict=True):
        desk.finisher.put(run, ending)

    assert await desk.finisher.run_once() == 5
    assert await desk.finisher.acknowledge_once() == 5

    homes = ["outcomes", "outbox", "dead_letters", "outbox", "leases"]
    for run, home in zip(runs, homes, strict=True):
        assert await desk.world.row(home, run.job.id) is not None
    assert (desk.finisher.written, desk.finisher.fenced, len(desk.runs)) == (4, 1, 0)
    assert await desk.entries() == 0
    assert await conservation(desk.world.db) == []


async def test_a_fenced_ending_is_counted_dropped_and_acknowledged(desk: Desk) -> None:
    [run] = await desk.deliver()
    await desk.world.execute("UPDATE leases SET attempt = attempt + 1")

    desk.finisher.put(run, Done("1"))
    await desk.finisher.run_once()

    assert (desk.finisher.written, desk.finisher.fenced) == (0, 1)
    assert await desk.world.row("outcomes", run.job.id) is None


async def test_a_lost_connection_is_no_failure_of_the_job(desk: Desk) -> None:
    """The statement's session is cut while it waits; what it was to write is written all the same."""
    [run] = await desk.deliver()
    async with desk.held_up(run) as blocker:
        await blocker.execute(CUT_WHO_WAITS)

    assert (desk.finisher.written, desk.finisher.fenced) == (1, 0)
    assert await desk.world.row("outcomes", run.job.id) is not None


@pytest.mark.parametrize("condition", ["disk_full", "out_of_memory", "deadlock_detected", "io_error", "internal_error"])
async def test_a_server_in_trouble_of_its_own_loses_no_ending(desk: Desk, condition: str) -> None:
    [run] = await desk.deliver()
    await desk.world.execute("CREATE SEQUENCE tries")  # it counts what is rolled back, too
    await desk.world.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('tries'); "
        f"RAISE EXCEPTION 'not now' USING ERRCODE = '{condition}'; END $$"
    )
    await desk.world.execute("CREATE TRIGGER refuse BEFORE INSERT ON outcomes FOR EACH ROW EXECUTE FUNCTION refuse()")
    desk.finisher.put(run, Done("1"))
    writing = asyncio.create_task(desk.finisher.run_once())
    async with desk.world.db.session() as connection:
        while not writing.done() and not await connection.fetchval("SELECT is_called FROM tries"):
            await asyncio.sleep(0.01)
    await desk.world.execute("DROP TRIGGER refuse ON outcomes")
    await writing

    assert (desk.finisher.written, desk.finisher.fenced) == (1, 0)
    assert await desk.world.row("outcomes", run.job.id) is not None


async def test_an_ending_sent_twice_because_its_reply_was_lost_counts_as_written(desk: Desk) -> None:
    [run] = await desk.deliver()
    async with desk.held_up(run) as blocker:
        await blocker.execute(CUT_WHO_WAITS)
        # What the cut session had committed, had it got so far: the same attempt's own outcome.
        await blocker.execute(
            "WITH gone AS (DELETE FROM leases RETURNING *) "
            "INSERT INTO outcomes (job_id, kind, queue, state, result, worker_id, attempt, retries, crashes, releases) "
            "SELECT job_id, kind, queue, 'done', '1', worker_id, attempt, retries, crashes, releases FROM gone"
        )

    assert (desk.finisher.written, desk.finisher.fenced) == (1, 0)


async def test_one_result_that_cannot_be_stored_is_buried_and_holds_up_no_other(desk: Desk) -> None:
    good, bad = await desk.deliver(2)
    desk.finisher.put(good, Done('{"fine":1}'))
    desk.finisher.put(bad, Done("{not json"))

    await desk.finisher.run_once()

    assert await desk.world.row("outcomes", good.job.id) is not None
    dead = await desk.world.row("dead_letters", bad.job.id)
    assert dead is not None
    assert dead["reason"] == "invalid_output"
