"""A history behind the hot statements and a backlog before them, and what each statement is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from app.store.database import Session
from app.store.fleet import LOCK_CLASS

BATCH = 50
NEWEST = UUID(int=2**128 - 1)
OLDEST = UUID(int=0)
KINDS = ["ticket.triage", "mail.send", "report.make", "file.convert"]

MORE = """
INSERT INTO workers (id, role, host, pid, queues, kinds, slots, transport, left_at, settled_at)
SELECT gen_random_uuid(), 'worker', 'host', n, '{default}', '{ticket.triage}', 10, 'redis',
  CASE WHEN n > 2 THEN now() END, CASE WHEN n > 2 THEN now() END
FROM generate_series(1, 20000) n;
UPDATE workers SET settled_at = heartbeat_at WHERE left_at IS NOT NULL;
WITH taken AS (
  DELETE FROM outbox WHERE job_id IN (SELECT job_id FROM outbox WHERE NOT deferred ORDER BY job_id DESC LIMIT 100)
  RETURNING *
)
INSERT INTO leases (job_id, kind, queue, priority, worker_id, started_at, run_until, timeout_seconds, attempt, retries,
  max_retries, crashes, releases)
SELECT job_id, kind, queue, priority, (SELECT id FROM workers WHERE left_at IS NULL ORDER BY pid LIMIT 1), now(),
  now() + interval '1 h', timeout_seconds, attempt + 1, retries, max_retries, crashes, releases
FROM taken;
INSERT INTO effects (job_id, key, attempt, worker_id, policy, args_digest, state)
SELECT job_id, 'mail', attempt, worker_id, 'repeatable', '\\x00', 'intent' FROM leases;
INSERT INTO effects (job_id, key, attempt, worker_id, policy, args_digest, state, result)
SELECT job_id, 'step ' || n, attempt, worker_id, 'repeatable', '\\x00', 'recorded', '1'
FROM leases CROSS JOIN generate_series(1, 200) n;
INSERT INTO idempotency_keys SELECT gen_random_uuid(), gen_random_uuid(), id FROM jobs;
INSERT INTO operator_actions (actor, action, job_id)
SELECT 'ann', 'cancel', job_id FROM outcomes WHERE state = 'cancelled'
"""


@dataclass(frozen=True)
class Case:
    """A statement with its arguments. `pruned`: it needs no more than two partitions of each table."""

    name: str
    args: Sequence[Any]
    pruned: bool = True
    of_the_leader: bool = False


SAMPLE = """
SELECT
  ARRAY(SELECT job_id FROM outbox WHERE NOT deferred ORDER BY job_id DESC LIMIT $1) AS waiting,
  ARRAY(SELECT job_id FROM leases ORDER BY job_id LIMIT $1) AS leased,
  ARRAY(SELECT attempt FROM leases ORDER BY job_id LIMIT $1) AS attempts,
  ARRAY(SELECT job_id FROM dead_letters ORDER BY job_id DESC LIMIT $1) AS dead,
  ARRAY(SELECT job_id FROM outcomes ORDER BY job_id DESC LIMIT $1) AS ended,
  (SELECT worker_id FROM leases LIMIT 1) AS worker,
  (SELECT heartbeat_at FROM workers WHERE id = (SELECT worker_id FROM leases LIMIT 1)) AS heard_at
"""


@dataclass(frozen=True)
class Sample:
    """Jobs of each sort, a batch of neighbours, and the worker that holds the leases."""

    waiting: list[UUID]
    leased: list[UUID]
    attempts: list[int]
    dead: list[UUID]
    ended: list[UUID]
    worker: UUID
    heard_at: datetime


ANY = Sample([OLDEST], [OLDEST], [1], [OLDEST], [OLDEST], OLDEST, datetime.now(UTC))


def cases(of: Sample) -> list[Case]:
    return [*of_callers(of), *of_holders(of), *of_effects(of), *of_the_fleet(of), *of_operators(of), *pages()]


def of_callers(of: Sample) -> list[Case]:
    keys, some = [uuid4() for _ in range(BATCH)], BATCH
    what = [["default"] * some, ["mail.send"] * some, ["default"] * some, [5] * some, ["{}"] * some, [None] * some]
    return [
        Case("submit", [keys, keys, *what, [2] * some, [60.0] * some, *[[None] * some] * 3]),
        Case("keys_taken", [keys]),
        Case("cancel_if_open", [of.waiting[0], None, "ann"]),
        Case("retry_if_in_budget", [of.dead[0], None, "ann", 3]),
        Case("standing", [of.ended]),
        Case("hydrate", [of.ended, True]),
    ]


def of_holders(of: Sample) -> list[Case]:
    lease, some = (of.leased, of.attempts), BATCH
    texts = {word: [word] * some for word in ("1", "failed", "{}", "permanent_error", "f", "stopped")}
    return [
        Case("claim", [of.waiting, of.worker, KINDS, 3600.0, 3.0, False]),
        Case("claim_due", ["default", of.worker, KINDS, 3600.0, 3.0, some, 0.0]),
        Case("finish_if_leased", [*lease, texts["1"]]),
        Case("retry_if_leased", [*lease, [1.0] * some, texts["failed"], texts["{}"], [True] * some, 3]),
        Case("bury_if_leased", [*lease, texts["permanent_error"], texts["{}"], texts["f"], texts["failed"]]),
        Case("release_if_leased", [*lease, texts["stopped"], 100, 3]),
        Case("ended_by_attempt", lease),
        Case("progress_if_leased", [of.leased[0], of.attempts[0], "{}"]),
    ]


def of_effects(of: Sample) -> list[Case]:
    job, attempt, lease, some = of.leased[0], of.attempts[0], (of.leased, of.attempts), BATCH
    wish = [["file"] * some, ["repeatable"] * some, [b"\0"] * some, [False] * some]
    return [
        Case("intend_if_leased", [*lease, *wish]),
        Case("intend_if_leased", [*lease, ["step 7"] * some, *wish[1:]]),
        Case("record_if_leased", [*lease, ["mail"] * some, ["1"] * some]),
        Case("clear_if_leased", [job, attempt, "mail"]),
        Case("take_over_if_leased", [job, attempt, "mail", attempt - 1, 15.0, LOCK_CLASS]),
        Case("effect", [job, "mail"]),
    ]


def of_the_fleet(of: Sample) -> list[Case]:
    two, some = ["default", "slow"], BATCH
    return [
        Case("heartbeat", [of.worker, True, False, False, None]),
        Case("heartbeat", [of.worker, True, False, False, of.leased]),
        Case("observed_workers", []),
        Case("rescue", [[of.worker], [of.heard_at], [False], uuid4(), 3, 1.0, 300.0, LOCK_CLASS]),
        Case("rescue_overdue", [1.0, 300.0, 3]),
        Case("relay_scan", [two, [some, some], [OLDEST] * 20, [None, None]], of_the_leader=True),
        Case("waiting_queues", [], of_the_leader=True),
        Case("promote_due", [some]),
        Case("expire", [some]),
        Case("solo_waiting", [of.worker, some]),
    ]


def of_operators(of: Sample) -> list[Case]:
    return [
        Case("replay_if_dead", ["again", of.dead, "fixed", "ann"]),
        Case("discard_if_dead", [of.dead, "no use", "ann"]),
        Case("dead_impact", [of.dead]),
    ]


def pages() -> list[Case]:
    now, page = datetime.now(UTC), (NEWEST, OLDEST, None, None, BATCH, 20_000)
    died = (now + timedelta(days=1), NEWEST, now - timedelta(days=90), None, None, None, None, BATCH, 20_000)
    whole = [(name, page) for name in ("page_jobs", "page_done", "page_cancelled", "page_dead")]
    by_state = [("page_outbox", (*page, "queued")), ("page_leases", (*page, "running")), ("page_dead_letters", died)]
    return [Case(name, args, pruned=False) for name, args in (*whole, *by_state)]


async def sample_of(session: Session) -> Sample:
    """Neighbours among the jobs of each sort."""
    row = await session.fetchrow(SAMPLE, BATCH)
    assert row is not None
    return Sample(
        waiting=sorted(row["waiting"]),
        leased=row["leased"],
        attempts=row["attempts"],
        dead=sorted(row["dead"]),
        ended=sorted(row["ended"]),
        worker=row["worker"],
        heard_at=row["heard_at"],
    )
