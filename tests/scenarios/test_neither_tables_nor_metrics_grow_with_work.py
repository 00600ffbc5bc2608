"""Work done leaves no trace that makes the next work dearer: not in the tables that churn, and not in the metrics."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from app.domain.states import Reason
from app.settings import Settings
from app.store import fleet
from app.store.database import Database, connect, sql
from app.store.fleet import Incarnation
from app.store.gauges import OTHERS
from tests.fundamentals.scale import scaled
from tests.integration.listening import listening
from tests.integration.world import KIND, World

CHURN = scaled(4_000, 20_000)
BATCH = 500
BEATS = 500
NAMES = 200
RESTARTS = 50
LABELS = re.compile(r"^(outlast_\w+(?:\{.*\})?) ", re.MULTILINE)


async def test_a_heartbeat_updates_its_row_in_place(world: World) -> None:
    """Every heartbeat changed an indexed column, and the table of workers grew by a row each."""
    for _ in range(BEATS):
        await world.beat()

    hot, updates = await _updates(world)

    assert updates >= BEATS
    assert hot / updates > 0.9


async def _updates(world: World) -> tuple[int, int]:
    """Of the table of workers: those in place, and all, once the server has counted what was done here."""
    async with asyncio.timeout(30):
        while True:
            await world.beat()  # a session reports what it did at the end of a later statement
            async with world.db.session() as connection:
                row = await connection.fetchrow(
                    "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE relname = 'workers'"
                )
            if row is not None and row["n_tup_upd"] >= BEATS:
                return row["n_tup_hot_upd"], row["n_tup_upd"]
            await asyncio.sleep(0.2)


async def test_a_snapshot_held_open_makes_no_claim_dearer_and_its_end_frees_what_it_kept(
    world: World, settings: Settings
) -> None:
    """A report kept a snapshot for minutes; every claim had to step over all the rows that had died since."""
    before = await _pages_of_a_claim(world)
    report = await connect(settings, "test report")
    snapshot = report.transaction(isolation="repeatable_read")
    await snapshot.start()
    await report.fetchval("SELECT count(*) FROM outbox")
    for _ in range(CHURN // BATCH):
        await world.finish(await world.run(BATCH))

    assert await _pages_of_a_claim(world) <= 3 * before
    assert await _dead_rows(world) >= CHURN
    await snapshot.rollback()
    await report.close()
    assert await _dead_rows(world) == 0


async def _pages_of_a_claim(world: World) -> int:
    """How many pages the claim of 20 jobs looks at to find their rows in the outbox."""
    ids = await world.submit(20)
    await world.beat()
    async with world.db.transaction() as connection:
        asked = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql('claim')}"
        told = await connection.fetchval(asked, ids, world.worker_id, [KIND], 60.0, 60.0, False)
    nodes = list(_nodes(json.loads(told)[0]["Plan"]))
    scans = [node for node in nodes if node.get("Relation Name") == "outbox" and "Scan" in node["Node Type"]]
    assert scans
    return sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in scans)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


async def _dead_rows(world: World) -> int:
    """Dead rows of the outbox that a vacuum must leave."""
    found: list[str] = []
    connection = await connect(world.settings, "test vacuum")
    connection.add_log_listener(lambda _, message: found.append(str(message)))
    await connection.execute("VACUUM (VERBOSE) outbox")
    await connection.close()
    text = "\n".join(found)
    return int(re.findall(r"(\d+) (?:are dead but not yet removable|dead row versions cannot be removed yet)", text)[0])


async def test_metrics_have_as_many_series_after_any_work_as_before_it(
    world: World, settings: Settings, db: Database
) -> None:
    """Names that callers chose, ids and hosts were labels: every scrape was longer than the last."""
    async with listening(settings, db) as client:

        async def series() -> set[str]:
            await world.beat()
            return set(LABELS.findall((await client.get("/metrics")).text))

        before = await series()
        for _ in range(RESTARTS):
            process = Incarnation(uuid4(), "worker", ["default"], [KIND], 10, "pg")
            await fleet.register(world.session, process)
        for number in range(NAMES):
            answer = await client.post("/v1/jobs", json={"kind": "any", "input": 1, "queue": f"of-caller-{number}"})
            assert answer.status_code == 202
        await world.die(2, reason=Reason.EXPIRED)
        await world.finish(await world.run(BATCH))
        await world.run(1)
        after = await series()

    of_queue = ("outlast_jobs_waiting", "outlast_jobs_running", "outlast_oldest_due_seconds")
    assert after - before == {f'{name}{{queue="{queue}"}}' for name in of_queue for queue in ("default", OTHERS)} | {
        'outlast_dead_letters{reason="expired"}'
    }
