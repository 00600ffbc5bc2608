"""What the hot statements read, with a history behind them and a backlog before them: a batch, never the pile.

Each is explained and run with the settings of our sessions, once planned for its values and once for any values, as
the server does with a statement it has seen a few times.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from app.settings import Settings
from app.store.database import Session, connect, sql
from app.store.fleet import LOCK_CLASS
from bench.load_history import Sizes, load
from tests.databases import in_database

HISTORY = Sizes(outcomes=50_000, dead=20_000, waiting=20_000)
BATCH = 50
NEWEST = UUID(int=2**128 - 1)
OLDEST = UUID(int=0)
KINDS = ["ticket.triage", "mail.send", "report.make", "file.convert"]

GROWING = (
    *("jobs", "outcomes", "effects", "attempts"),
    *("outbox", "dead_letters", "idempotency_keys", "operator_actions", "workers"),
)
PARTITIONED = GROWING[:4]

# 50 rows with their indexes are some hundred blocks; each pile above has tens of thousands of entries.
BLOCKS_MAX = 4_000
ROWS_MAX = 1_500
SORTED_MAX = 1_500
PARTITIONS_MAX = 2

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
INSERT INTO idempotency_keys SELECT gen_random_uuid(), gen_random_uuid(), id FROM jobs;
INSERT INTO operator_actions (actor, action, job_id)
SELECT 'ann', 'cancel', job_id FROM outcomes WHERE state = 'cancelled';
ANALYZE
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


@dataclass(frozen=True)
class Case:
    """A statement with its arguments. `pruned`: it needs no more than two partitions of each table."""

    name: str
    args: Sequence[Any]
    pruned: bool = True
    of_the_leader: bool = False


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


@pytest.fixture(scope="module")
def piled_settings(postgres_url: str, template_database: str) -> Iterator[Settings]:
    """A database with a history, dead letters, a backlog and a worker at work."""
    name = f"piles_{uuid4().hex}"
    settings = Settings(database_url=SecretStr(in_database(postgres_url, name)))

    async def admin(statement: str) -> None:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute(statement)
        await connection.close()

    async def fill() -> None:
        await load(settings, HISTORY, lambda _: None)
        connection = await asyncpg.connect(settings.database_url.get_secret_value())
        await connection.execute(MORE)
        await connection.close()

    asyncio.run(admin(f"CREATE DATABASE {name} TEMPLATE {template_database}"))
    asyncio.run(fill())
    yield settings
    asyncio.run(admin(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def session(piled_settings: Settings) -> AsyncIterator[Session]:
    connection = await connect(piled_settings, "test")
    yield connection
    connection.terminate()


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


@pytest.mark.parametrize("plan", ["force_custom_plan", "force_generic_plan"])
async def test_no_statement_of_a_job_reads_more_than_a_batch_however_much_there_is(session: Session, plan: str) -> None:
    row = await session.fetchrow(SAMPLE, BATCH)
    assert row is not None
    sample = Sample(
        waiting=sorted(row["waiting"]),
        leased=row["leased"],
        attempts=row["attempts"],
        dead=sorted(row["dead"]),
        ended=sorted(row["ended"]),
        worker=row["worker"],
        heard_at=row["heard_at"],
    )
    await session.execute(f"SET plan_cache_mode = {plan}")
    wrong = {case.name: found for case in cases(sample) if (found := await excesses(session, case))}
    assert wrong == {}


async def excesses(session: Session, case: Case) -> list[str]:
    """What the statement reads too much of; what it changes is rolled back."""
    await session.execute(f"PREPARE explained AS {sql(case.name)}")
    change = session.transaction()
    await change.start()
    try:
        if case.of_the_leader:
            await session.fetch(sql("relay_plan"), "0")
        words = ", ".join(map(literal, case.args))
        run = f"EXECUTE explained ({words})" if case.args else "EXECUTE explained"
        [plan] = json.loads(await session.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {run}"))
        return list(judged(plan["Plan"], case))
    finally:
        await change.rollback()
        await session.execute("DEALLOCATE explained")


def judged(plan: dict[str, Any], case: Case) -> Iterator[str]:
    blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    if blocks > BLOCKS_MAX:
        yield f"{blocks} blocks"
    rows: Counter[str] = Counter()
    partitions: dict[str, set[str]] = {}
    for node in nodes(plan):
        table = table_of(node.get("Relation Name", ""))
        if node["Node Type"] == "Seq Scan" and table in GROWING:
            yield f"a sequential scan of {table}"
        if (
            node["Node Type"] in {"Sort", "Incremental Sort"}
            and node["Actual Rows"] * node["Actual Loops"] > SORTED_MAX
        ):
            yield f"a sort of {node['Actual Rows']} rows"
        if table in GROWING and node["Actual Loops"]:
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            rows[table] += read * node["Actual Loops"]
            partitions.setdefault(table, set()).add(node["Relation Name"])
    yield from (f"{count} rows of {table}" for table, count in rows.items() if count > ROWS_MAX)
    if case.pruned:
        yield from (
            f"{len(parts)} partitions of {table}"
            for table, parts in partitions.items()
            if table in PARTITIONED and len(parts) > PARTITIONS_MAX
        )


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def table_of(relation: str) -> str:
    """The table that a relation is, or is a partition of."""
    return next((table for table in PARTITIONED if relation.startswith(f"{table}_")), relation)


def literal(value: object) -> str:
    """A value as SQL text: EXECUTE takes no parameters."""
    if value is None:
        return "NULL"
    return "'" + text_of(value).replace("'", "''") + "'"


def text_of(value: object) -> str:
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return "{" + ",".join("NULL" if item is None else quoted(text_of(item)) for item in items) + "}"
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
