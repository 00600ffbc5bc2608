"""Jobs before their last start, by the dozen: each alone, and not a process for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.store.database import Database
from tests.fundamentals.conftest import HANDLERS, Running
from tests.fundamentals.scale import scaled

JOBS = scaled(24, 100)
PROCESSES = 4
FAR_SECONDS = 3_600

BEFORE_THEIR_LAST_START = "UPDATE outbox SET solo = true, crashes = 2, deferred = false, due_at = now()"
ENDED = """
SELECT worker_id, started_at, finished_at AS ended_at, true AS done FROM outcomes
UNION ALL SELECT worker_id, started_at, died_at, false FROM dead_letters ORDER BY started_at
"""


async def test_dozens_of_last_starts_need_few_processes_and_none_has_company(
    running: Running, db: Database, tmp_path: Path
) -> None:
    running.worker(env={"OUTLAST_SOLO_PROCESSES": str(PROCESSES)})
    await running.workers_entered(1, seconds=60)
    plan = {"journal": str(tmp_path / "journal")}
    jobs = running.client.submit_all("test.steps", [plan] * JOBS, delay_seconds=FAR_SECONDS)
    async with db.session() as connection:
        await connection.execute(BEFORE_THEIR_LAST_START)
    for job in jobs:
        running.client.wait_for(job, "done", seconds=90)
    async with db.session() as connection:
        rows = await connection.fetch(ENDED)
    assert len({row["worker_id"] for row in rows}) < JOBS / 2
    last_end: dict[Any, Any] = {}
    for row in rows:
        assert row["started_at"] >= last_end.get(row["worker_id"], row["started_at"])
        last_end[row["worker_id"]] = row["ended_at"]


@pytest.mark.parametrize("transport", ["pg"], indirect=True)
async def test_a_process_with_code_left_over_gives_no_other_last_start(
    running: Running, db: Database, tmp_path: Path
) -> None:
    running.stack.worker([*HANDLERS, "tests.handlers.misbehaving"], env={"OUTLAST_SOLO_PROCESSES": "1"})
    await running.workers_entered(1, seconds=60)
    stubborn = running.client.submit(
        "bad.stubborn", {"how": "", "journal": str(tmp_path / "never")}, delay_seconds=FAR_SECONDS
    )
    plain = running.client.submit("test.steps", {"journal": str(tmp_path / "journal")}, delay_seconds=FAR_SECONDS)
    async with db.session() as connection:
        await connection.execute(BEFORE_THEIR_LAST_START)
    running.client.wait_for(stubborn, "dead", seconds=60)
    running.client.wait_for(plain, "done", seconds=60)
    async with db.session() as connection:
        first, second = await connection.fetch(ENDED)
    assert not first["done"]
    assert first["worker_id"] != second["worker_id"]
