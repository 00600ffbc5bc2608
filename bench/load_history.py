"""Fills a migrated database with a history: ended jobs of the last 30 days, dead letters, and jobs that wait.

`python -m bench.load_history [--outcomes N] [--dead N] [--waiting N]` fills the database of `OUTLAST_DATABASE_URL`.
Ids are UUIDv7 of the time a job was submitted, as the database would have minted them, and weeks that are over get
their partitions, as they would have had them. Every 20th ended job was cancelled; every 20th took two attempts.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.settings import Settings
from app.store.database import Connection, connect
from app.store.migrate import migrate

CHUNK = 50_000
CHUNK_SECONDS_MAX = 300
DAYS = 30
SECONDS_PER_DAY = 86_400.0
WEEKS_BACK = DAYS // 7 + 1

PAST_PARTITIONS = """
DO $do$
DECLARE
  parent text; part text; week timestamptz;
BEGIN
  FOREACH parent IN ARRAY ARRAY['jobs', 'outcomes', 'effects', 'attempts'] LOOP
    FOR back IN 1..{weeks} LOOP
      week := (date_trunc('week', now() AT TIME ZONE 'UTC') - make_interval(weeks => back)) AT TIME ZONE 'UTC';
      part := parent || '_' || to_char(week AT TIME ZONE 'UTC', 'IYYY"w"IW');
      IF to_regclass(part) IS NULL THEN
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                       part, parent, outlast_uuid_floor(week), outlast_uuid_floor(week + interval '7 days'));
      END IF;
    END LOOP;
  END LOOP;
END $do$
"""

# $1 first number, $2 last number, $3 seconds over which $4 jobs arrived -> jobs, for what follows in the statement.
JOBS = """
WITH drawn AS MATERIALIZED (
  SELECT n, at, (left(replace(outlast_uuid_floor(at)::text, '-', ''), 12) || '7' || left(md5(random()::text), 3) || '8'
                 || left(md5(n || random()::text), 15))::uuid AS id,
         (ARRAY['ticket.triage', 'ticket.triage', 'mail.send', 'report.make', 'file.convert'])[1 + n % 5] AS kind,
         (ARRAY['default', 'default', 'default', 'slow'])[1 + n % 4] AS queue, gen_random_uuid() AS worker
  FROM (SELECT n, now() - make_interval(secs => $3::float8 * ($4::int - n + 1) / $4) AS at
        FROM generate_series($1::int, $2::int) n) s
), made AS (
  INSERT INTO jobs (id, kind, queue, priority, input, max_retries, timeout_seconds, created_at)
  SELECT id, kind, queue, 5, json_build_object('id', n, 'body', repeat('My invoice is wrong. ', 8)), 2, 60, at
  FROM drawn
)
"""

OUTCOMES = f"""
{JOBS}, failed_once AS (
  INSERT INTO attempts (job_id, attempt, worker_id, started_at, ended_at, "end", error)
  SELECT id, 1, worker, at, at + interval '1 s', 'failed',
         '{{"type": "TimeoutError", "message": "no answer", "fingerprint": "00000000000000aa"}}'
  FROM drawn WHERE n % 20 = 1
), recorded AS (
  INSERT INTO effects (job_id, key, attempt, worker_id, policy, args_digest, state, result, intent_at, recorded_at)
  SELECT id, 'classify', 1, worker, 'repeatable', '\\x00', 'recorded', '"billing"', at, at + interval '1 s'
  FROM drawn WHERE n % 20 = 1
), told AS (
  INSERT INTO operator_actions (at, actor, action, job_id, reason)
  SELECT at, 'bench', 'cancel', id, 'history' FROM drawn WHERE n % 20 = 0
)
INSERT INTO outcomes (job_id, kind, queue, state, reason, result, worker_id, attempt, retries, crashes, releases,
  started_at, finished_at)
SELECT id, kind, queue, CASE WHEN n % 20 = 0 THEN 'cancelled' ELSE 'done' END, NULL,
       CASE WHEN n % 20 <> 0 THEN '{{"category": "billing", "reply": "We looked at your invoice."}}'::json END,
       gen_random_uuid(), (n % 20 <> 0)::int + (n % 20 = 1)::int, (n % 20 = 1)::int, 0, 0, at, at + interval '3 s'
FROM drawn
"""

TRIED = """, tried AS (
  INSERT INTO attempts (job_id, attempt, worker_id, started_at, ended_at, "end", error)
  SELECT id, nth, gen_random_uuid(), at, at + interval '1 s', 'failed',
         '{"type": "TimeoutError", "message": "no answer", "fingerprint": "00000000000000aa"}'
  FROM drawn, generate_series(1, %s) nth
)"""

DEAD = f"""
{JOBS} {TRIED % 3}
INSERT INTO dead_letters (job_id, kind, queue, priority, reason, error, fingerprint, worker_id, timeout_seconds,
  attempt, retries, max_retries, crashes, releases, started_at, died_at)
SELECT id, kind, queue, 5, (ARRAY['permanent_error', 'retries_exhausted', 'timed_out', 'invalid_input'])[1 + n % 4],
       json_build_object('type', 'ValueError', 'message', 'no such customer',
                         'fingerprint', lpad(to_hex(n % 50), 16, '0')),
       lpad(to_hex(n % 50), 16, '0'), gen_random_uuid(), 60, 3, 2, 2, 0, 0, at, at + random() * (now() - at)
FROM drawn
"""

WAITING = f"""
{JOBS} {TRIED % "(n % 20 = 0)::int"}
INSERT INTO outbox (job_id, kind, queue, priority, due_at, deferred, timeout_seconds, attempt, max_retries)
SELECT id, kind, queue, 5, CASE WHEN n % 10 = 0 THEN now() + interval '1 d' ELSE at END, n % 10 = 0, 60,
       (n % 20 = 0)::int, 2
FROM drawn
"""


@dataclass(frozen=True)
class Sizes:
    """How many jobs of each sort. `waiting`: a tenth of them is not due yet."""

    outcomes: int = 1_000_000
    dead: int = 10_000
    waiting: int = 100_000


async def load(settings: Settings, sizes: Sizes, say: Callable[[str], None], *, analyzed: bool = True) -> None:
    """Adds the history, in transactions of 50,000 jobs. Raises `DatabaseAway`."""
    connection = await connect(settings, "bench")
    try:
        await connection.execute(PAST_PARTITIONS.format(weeks=WEEKS_BACK))
        await _fill(connection, "ended jobs", OUTCOMES, sizes.outcomes, DAYS, say)
        await _fill(connection, "dead letters", DEAD, sizes.dead, DAYS, say)
        await _fill(connection, "waiting jobs", WAITING, sizes.waiting, 1, say)
        if analyzed:
            say("vacuum and analyze")
            await connection.execute("VACUUM ANALYZE", timeout=CHUNK_SECONDS_MAX)
    finally:
        await connection.close()


async def _fill(
    connection: Connection, what: str, statement: str, count: int, days: int, say: Callable[[str], None]
) -> None:
    began = time.monotonic()
    for first in range(1, count + 1, CHUNK):
        last = min(first + CHUNK - 1, count)
        await connection.execute(statement, first, last, days * SECONDS_PER_DAY, count, timeout=CHUNK_SECONDS_MAX)
        say(f"{what}: {last:,} of {count:,}, {last / (time.monotonic() - began):,.0f}/s")


def sizes_from(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `Sizes(...)` is made of."""
    parser.add_argument("--outcomes", type=int, default=Sizes.outcomes)
    parser.add_argument("--dead", type=int, default=Sizes.dead)
    parser.add_argument("--waiting", type=int, default=Sizes.waiting)


def talk(text: str) -> None:
    """Progress goes to stderr."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fills the database of OUTLAST_DATABASE_URL with a history.")
    sizes_from(parser)
    given = parser.parse_args()
    settings = Settings()
    migrate(settings)
    asyncio.run(load(settings, Sizes(given.outcomes, given.dead, given.waiting), talk))
    return 0


if __name__ == "__main__":
    sys.exit(main())
