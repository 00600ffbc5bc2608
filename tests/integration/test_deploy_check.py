"""Before a release goes out it can be asked which jobs it would strand."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from app.store.database import Database
from app.store.in_flight import PAGE
from tests.processes import Stack

NOW = ("--handlers", "tests.handlers.arithmetic")
NEXT = ("--handlers", "tests.handlers.arithmetic_next")
CONFLICT = 5

JOBS = """
INSERT INTO jobs (id, kind, queue, priority, input, max_retries, timeout_seconds)
SELECT outlast_uuid_v7(), $1, 'default', 5, $2, 2, 60 FROM generate_series(1, $3) RETURNING id
"""
WAITING = """
INSERT INTO outbox (job_id, kind, queue, priority, timeout_seconds, max_retries)
SELECT id, kind, queue, priority, timeout_seconds, max_retries FROM jobs WHERE id = ANY($1)
"""
RUNNING = """
INSERT INTO leases (job_id, kind, queue, priority, worker_id, started_at, run_until, timeout_seconds, attempt, retries,
  max_retries, crashes, releases)
SELECT id, kind, queue, priority, gen_random_uuid(), now(), now() + interval '1 h', 60, 1, 0, 2, 0, 0
FROM jobs WHERE id = ANY($1)
"""
DEAD = """
INSERT INTO dead_letters (job_id, kind, queue, priority, timeout_seconds, attempt, retries, max_retries, crashes,
  releases, reason, error, fingerprint, died_at)
SELECT id, kind, queue, priority, 60, 1, 0, 2, 0, 0, 'permanent_error', '{}', 'f', now() FROM jobs WHERE id = ANY($1)
"""


async def jobs(db: Database, home: str, kind: str, value: int, count: int = 1) -> list[UUID]:
    async with db.transaction() as connection:
        rows = await connection.fetch(JOBS, kind, json.dumps({"value": value}), count)
        ids = [row["id"] for row in rows]
        await connection.execute(home, ids)
    return ids


def asked(stack: Stack, *words: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """The exit code, what is stranded by job, and what was said."""
    ran = stack.run("deploy", "check", *words, "-o", "jsonl")
    stranded = [json.loads(line) for line in ran.stdout.splitlines()]
    return ran.returncode, {one["job_id"]: one for one in stranded}, ran.stderr


async def test_jobs_that_a_release_could_not_run_are_named_with_the_reason(stack: Stack, db: Database) -> None:
    await jobs(db, WAITING, "test.double", 5, 3)
    [large] = await jobs(db, WAITING, "test.double", 500)
    [running] = await jobs(db, RUNNING, "test.double", 100)
    [gone] = await jobs(db, RUNNING, "test.gone", 1)
    [dead] = await jobs(db, DEAD, "test.double", 700)

    code, stranded, said = asked(stack, *NEXT)
    assert code == CONFLICT
    assert set(stranded) == {str(large), str(running), str(gone)}
    assert stranded[str(large)]["standing"] == "waiting"
    assert "/value" in stranded[str(large)]["why"]
    assert "less than 100" in stranded[str(large)]["why"]
    assert "500" not in stranded[str(large)]["why"]
    assert stranded[str(running)]["standing"] == "running"
    assert "no handler" in stranded[str(gone)]["why"]
    assert "of 6 jobs in flight 3" in said

    assert set(asked(stack, *NEXT, "--dead")[1]) == {str(large), str(running), str(gone), str(dead)}
    assert set(asked(stack, *NOW)[1]) == {str(gone)}


async def test_every_page_is_read_and_no_more_is_shown_than_asked_for(stack: Stack, db: Database) -> None:
    await jobs(db, WAITING, "test.double", 5, PAGE)
    last = await jobs(db, WAITING, "test.double", 500, PAGE + 1)
    code, stranded, said = asked(stack, *NEXT, "--limit", "2")
    assert (code, len(stranded)) == (CONFLICT, 2)
    assert set(stranded) <= set(map(str, last))
    assert f"of {2 * PAGE + 1:,} jobs in flight {PAGE + 1:,}" in said
    assert asked(stack, *NOW)[:2] == (0, {})


def test_without_handlers_there_is_nothing_to_ask(stack: Stack) -> None:
    ran = stack.run("deploy", "check")
    assert (ran.returncode, "OUTLAST_HANDLERS" in ran.stderr) == (2, True)
