"""Gathers the records of a run that has ended: rows of the database and lines of the logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from app.domain.states import AttemptEnd, State
from tests.chaos.caller import Caller
from tests.chaos.faults import Faults
from tests.chaos.observer import Observer
from tests.chaos.records import AttemptRow, EffectRow, HandlerLine, History, HomeRow, JobRow, Part
from tests.chaos.world import World

JOBS = """
SELECT id::text AS job_id, metadata, max_retries, extract(epoch FROM created_at)::float8 AS created_at FROM jobs
"""
HOMES = """
SELECT job_id::text, state, reason, attempt, retries, crashes, releases,
  extract(epoch FROM started_at)::float8 AS started_at, extract(epoch FROM finished_at)::float8 AS ended_at,
  (result ->> 'attempt')::int AS result_attempt
FROM outcomes
UNION ALL SELECT job_id::text, 'dead', reason, attempt, retries, crashes, releases,
  extract(epoch FROM started_at), extract(epoch FROM died_at), NULL FROM dead_letters
UNION ALL SELECT job_id::text, 'running', NULL, attempt, retries, crashes, releases,
  extract(epoch FROM started_at), NULL, NULL FROM leases
UNION ALL SELECT job_id::text,
  CASE WHEN NOT deferred THEN 'queued' WHEN attempt = 0 THEN 'scheduled' ELSE 'retrying' END,
  NULL, attempt, retries, crashes, releases, NULL, NULL, NULL FROM outbox
"""
ATTEMPTS = """
SELECT job_id::text, attempt, "end", extract(epoch FROM coalesce(started_at, ended_at))::float8 AS started_at,
  extract(epoch FROM ended_at)::float8 AS ended_at FROM attempts
"""
EFFECTS = "SELECT job_id::text, attempt, calls, state = 'recorded' AS recorded FROM effects"
REPLAYS = "SELECT job_id::text FROM operator_actions WHERE action = 'replay'"


async def gather(world: World, caller: Caller, faults: Faults, observer: Observer) -> History:
    """Everything the checker needs, read after the last job has ended or the time for it has passed."""
    counts = await world.sink_counts()
    return History(
        calls=caller.calls,
        handler=handler_lines(world.handler_log),
        faults=faults.fired,
        sightings=observer.sightings,
        jobs=[_job(row) for row in await world.fetch(JOBS)],
        homes=[_home(row) for row in await world.fetch(HOMES)],
        attempts=[_attempt(row) for row in await world.fetch(ATTEMPTS)],
        effects=[EffectRow(**dict(row)) for row in await world.fetch(EFFECTS)],
        replays=[row["job_id"] for row in await world.fetch(REPLAYS)],
        sink_calls=counts["calls_by_key"],
        filings=counts["filings_by_ticket"],
        to_replay=faults.scene.to_replay,
        max_crashes=world.settings.max_crashes,
        late_refused=world.late_refused(),
    )


def handler_lines(log: Path) -> Sequence[HandlerLine]:
    """The lines of the handler log, in the order they were written."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [
        HandlerLine(float(at), event, job_id, int(attempt), *rest, shift=float(shift))
        for at, shift, event, job_id, attempt, *rest in (line.split() for line in lines)
    ]


def _job(row: asyncpg.Record) -> JobRow:
    metadata = json.loads(row["metadata"])
    return JobRow(
        job_id=row["job_id"],
        key=metadata["key"],
        part=Part(metadata["part"]),
        max_retries=row["max_retries"],
        created_at=row["created_at"],
        delay_seconds=metadata.get("delay_seconds", 0.0),
    )


def _home(row: asyncpg.Record) -> HomeRow:
    return HomeRow(
        job_id=row["job_id"],
        state=State(row["state"]),
        reason=row["reason"],
        attempt=row["attempt"],
        retries=row["retries"],
        crashes=row["crashes"],
        releases=row["releases"],
        attempt_started_at=row["started_at"],
        ended_at=row["ended_at"],
        result_attempt=row["result_attempt"],
    )


def _attempt(row: asyncpg.Record) -> AttemptRow:
    return AttemptRow(row["job_id"], row["attempt"], AttemptEnd(row["end"]), row["started_at"], row["ended_at"])
