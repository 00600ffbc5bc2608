"""An entry that was read and not handled, or lost on the way, costs its job nothing: it runs, once, and is gone."""

from __future__ import annotations

import asyncio
import random
import signal
from uuid import uuid4

import pytest

from app.failpoints import Action, Point
from app.store.database import Database
from app.transport import keys
from tests.fundamentals.scale import scaled
from tests.processes import wait_until
from tests.scenarios.premises import HANDLERS, STREAM, Premises
from workers.exits import EXIT_DRAINED
from workers.orders import Orders
from workers.registry import load
from workers.worker import Worker

pytestmark = pytest.mark.timeout(600)  # processes start, several a test

READS_CUT = scaled(10, 50)
LIVE = scaled(60, 300)
ORPHANS = 5


def test_entries_from_before_the_first_worker_and_from_before_a_lost_group_are_all_read(premises: Premises) -> None:
    """A group made at the end of the stream skipped what had been published before it."""
    premises.stop_workers()
    premises.broker("FLUSHALL")
    early = premises.submit(10)
    wait_until(lambda: premises.length() > 0, 30, what="entries before any worker")
    premises.worker(WORKER_CONCURRENCY="10")
    premises.until_done(early)
    held = premises.submit(10, hold=True)
    premises.until_held(10)
    late = premises.submit(10)
    # An entry of a job that a worker took straight from the record stays unread, too.
    wait_until(lambda: premises.length() > premises.pending() > 0, 30, what="pending entries and unread ones")

    premises.broker("XGROUP", "DESTROY", STREAM, keys.GROUP)
    premises.go_on()

    premises.until_done(held + late)
    premises.until_empty()
    premises.performed_once(early + held + late)
    assert premises.charged(early + held + late) == {"attempts": 30, "retries": 0, "crashes": 0}


def test_jobs_of_a_killed_worker_run_again_behind_many_live_ones_though_their_entries_are_gone(
    premises: Premises,
) -> None:
    """The sweep read the same live entries in front again and again; deleted ones stayed pending, or broke it."""
    premises.stop_workers()
    live = premises.worker(WORKER_CONCURRENCY=str(LIVE))
    front = premises.submit(LIVE, hold=True)
    premises.until_held(LIVE)
    orphaned = premises.worker(WORKER_CONCURRENCY=str(ORPHANS))
    orphans = premises.submit(ORPHANS, hold=True)
    premises.until_held(LIVE + ORPHANS)
    pids = {int(line[2]) for line in premises.journal.lines("start") if line[0] in set(orphans)}
    receipts = [row[0] for row in premises.broker("XPENDING", STREAM, keys.GROUP, "-", "+", LIVE + ORPHANS)]
    premises.broker("XDEL", STREAM, receipts[-1], receipts[-3])
    premises.broker("XTRIM", STREAM, "MAXLEN", LIVE + ORPHANS - 3)

    premises.kill(pids)

    premises.until_held(LIVE + 2 * ORPHANS)
    premises.go_on()
    premises.until_done(front + orphans)
    premises.until_empty()
    starts = [line[0] for line in premises.journal.lines("start")]
    assert sorted(starts) == sorted(front + 2 * orphans)
    assert premises.charged(front) == {"attempts": LIVE, "retries": 0, "crashes": 0}
    assert premises.charged(orphans) == {"attempts": 2 * ORPHANS, "retries": 0, "crashes": ORPHANS}
    assert live.alive()
    assert orphaned.alive()


@pytest.mark.parametrize("action", [Action.KILL, Action.STOP])
def test_what_a_worker_had_read_but_not_claimed_when_it_died_or_froze_is_done_and_charged_nothing(
    premises: Premises, action: Action
) -> None:
    """A worker that died between reading and claiming kept its entries pending until somebody looked."""
    premises.work(2)
    obeyed = premises.fired(Point.CLAIM_DELIVERED)
    premises.order(action, Point.CLAIM_DELIVERED)

    ids = premises.submit(20)

    wait_until(lambda: premises.fired(Point.CLAIM_DELIVERED) > obeyed, 30, what="a worker that has read and no more")
    premises.until_done(ids)
    if action is Action.STOP:
        premises.resume(Point.CLAIM_DELIVERED)
    premises.until_empty()
    premises.performed_once(ids)
    assert premises.charged(ids) == {"attempts": 20, "retries": 0, "crashes": 0}


def test_a_finished_job_whose_worker_died_before_acknowledging_does_not_run_again(premises: Premises) -> None:
    """The result was stored, the message not yet acknowledged; the next worker did all the work again."""
    premises.work(2)
    obeyed = premises.fired(Point.FINISH_COMMITTED)
    premises.order(Action.KILL, Point.FINISH_COMMITTED)

    ids = premises.submit(1)

    wait_until(lambda: premises.fired(Point.FINISH_COMMITTED) > obeyed, 30, what="the worker's death")
    premises.until_done(ids)
    premises.until_empty()
    premises.performed_once(ids)


def test_workers_that_are_stopped_while_they_read_lose_nothing_and_charge_nothing(premises: Premises) -> None:
    """The broker had handed an entry over when the read was cancelled: it was pending, and nobody knew."""
    premises.stop_workers()

    ids = premises.run(_stopped_while_reading(premises))

    premises.work()
    premises.until_done(ids)
    premises.until_empty()
    premises.performed_once(ids)
    charged = premises.charged(ids)
    assert (charged["retries"], charged["crashes"]) == (0, 0)


async def _stopped_while_reading(premises: Premises) -> list[str]:
    """Jobs, each submitted at the moment that a worker of its own is told to stop."""
    ids: list[str] = []
    registry = load(HANDLERS)
    loop = asyncio.get_running_loop()
    try:
        for _ in range(READS_CUT):
            db = await Database.open(premises.settings, "worker")
            transactions = await Database.open(premises.settings, "worker transactions")
            worker = Worker(premises.settings, registry, Orders(uuid4()), db, transactions)
            working = asyncio.create_task(worker.run())
            reads = await premises.calls_now("xreadgroup")
            async with asyncio.timeout(30):
                while await premises.calls_now("xreadgroup") <= reads:
                    await asyncio.sleep(0.01)
            ids += await asyncio.to_thread(premises.submit, 1)
            await asyncio.sleep(random.uniform(0, 0.01))
            worker.stop()
            assert await working == EXIT_DRAINED
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    return ids
