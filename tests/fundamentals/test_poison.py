"""A job that kills its worker ends as a dead letter, and takes nobody with it."""

from __future__ import annotations

from pathlib import Path

from app.store.audit import conservation
from app.store.database import Database
from tests.client import journal_of
from tests.fundamentals.conftest import Running
from tests.fundamentals.scale import scaled

NEIGHBOURS = scaled(6, 20)


async def test_a_job_that_kills_its_worker_is_dead_after_three_starts_and_its_neighbours_live(
    running: Running, db: Database, tmp_path: Path
) -> None:
    culprit_journal, journal = tmp_path / "culprit", tmp_path / "neighbours"
    running.worker()
    running.worker()
    await running.workers_entered(2)

    plan = {"journal": str(journal), "sleep_seconds": scaled(1, 5)}
    neighbours = running.client.submit_all("test.steps", [plan] * NEIGHBOURS)
    culprit = running.client.submit("test.die", {"journal": str(culprit_journal)})

    dead = running.client.wait_for(culprit, "dead", seconds=60)
    assert dead["reason"] == "crashes_exhausted"
    assert dead["crashes"] == 3
    assert [line[1] for line in journal_of(culprit_journal).lines("start")] == ["1", "2", "3"]
    for neighbour in neighbours:
        job = running.client.wait_for(neighbour, "done", seconds=90)
        assert job["crashes"] <= 2
    attempts = running.client.timeline(culprit)["attempts"]
    assert [attempt["end"] for attempt in attempts] == ["lost", "lost", "lost"]
    assert all("exited with code 137" in attempt["cause"] for attempt in attempts)
    assert await conservation(db) == []
