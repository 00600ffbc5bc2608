"""The planted faults: what is taken out of the product, the run that must notice, and the rules that may say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.chaos.faults.links import hurt_name
from tests.chaos.plan import Shape
from tests.chaos.records import Part
from tests.chaos.runs.loads import PATIENT, SLOWER
from tests.chaos.world import Road

SQL = "app/store/sql"
FAILING: Mapping[Part, int] = {Part.OK: 40, Part.FLAKY: 60}
FILING: Mapping[Part, int] = {Part.OK: 30, Part.EFFECT: 70}

LOAD = Shape("P", "", jobs=150, seconds=6, faults={}, settings=PATIENT, charges=False)
KILLS = replace(
    LOAD,
    jobs=200,
    faults={"worker killed": 6},
    mix=SLOWER,
    settings={"worker_concurrency": 6},
    charges=True,
    workers=3,
)
FREEZES = replace(
    LOAD,
    seconds=10,
    faults={"worker frozen": 4},
    mix={Part.SLOW: 100},
    slow_seconds=(0.2, 4.0),
    settings={"suspect_seconds": 1, "lease_seconds": 2, "worker_concurrency": 6},
    charges=True,
)
UNDONE = """undone AS (
  DELETE FROM outcomes WHERE job_id = $1 AND state = 'done'
  RETURNING job_id, tenant, kind, queue, worker_id, attempt, retries, crashes, releases, started_at
"""
NO_SWEEP = ("workers/direct.py", "        return started + await self._claim_overdue()\n", "        return started\n")


@dataclass(frozen=True, slots=True)
class Flaw:
    """`edits` are (file, what stands there once, what stands there instead); one of `rules` must be broken."""

    name: str
    edits: Sequence[tuple[str, str, str]]
    shape: Shape
    rules: frozenset[str]


def flaw(name: str, shape: Shape, rules: set[str], *edits: tuple[str, str, str]) -> Flaw:
    return Flaw(name, edits, shape, frozenset(rules))


FLAWS = (
    flaw(
        "answered before it is on disk",
        replace(LOAD, jobs=600, faults={"postmaster killed": 3}),
        {"lost"},
        (
            "app/store/database.py",
            '        "jit": "off",\n',
            '        "jit": "off",\n        "synchronous_commit": "off",\n',
        ),
    ),
    flaw(
        "a key that is not unique",
        replace(LOAD, faults={"request cut off": 20}),
        {"unexpected"},
        (f"{SQL}/submit.sql", "WHERE key IS NULL OR id IN (SELECT job_id FROM taken)", "WHERE true"),
    ),
    flaw(
        "a late worker that neither heeds its heartbeat nor is fenced",
        FREEZES,
        {"foreign result"},
        ("workers/runs.py", "                run.lose()\n", "                continue\n"),
        ("workers/worker.py", "self._heart.silent_seconds() > self._settings.lease_seconds", "False"),
        (f"{SQL}/finish_if_leased.sql", "ON l.job_id = w.job_id AND l.attempt = w.attempt", "ON l.job_id = w.job_id"),
    ),
    flaw(
        "an effect on record performed again",
        replace(KILLS, mix=FILING),
        {"duplicate"},
        (
            "workers/effects.py",
            "                    return self._read(effect, row)\n                if row.state is EffectState.INTENT",
            "                    return await self._call(effect)\n                if row.state is EffectState.INTENT",
        ),
    ),
    flaw(
        "no intent before the call",
        replace(LOAD, jobs=60, mix=FILING),
        {"duplicate"},
        (
            "app/store/effects.py",
            "answer = await self._intents.submit(_Intent(job_id, attempt, key, policy, args_digest, again))",
            "answer = GRANTED",
        ),
    ),
    flaw(
        "dead at the first crash",
        KILLS,
        {"over budget"},
        (f"{SQL}/rescue.sql", "FROM taken WHERE crashes_now >= $5", "FROM taken WHERE crashes_now >= least($5, 1)"),
        (f"{SQL}/rescue.sql", "FROM taken WHERE crashes_now < $5", "FROM taken WHERE crashes_now < least($5, 1)"),
    ),
    flaw(
        "a crash that is not charged",
        KILLS,
        {"miscounted"},
        (f"{SQL}/rescue.sql", "l.crashes + 1 AS crashes_now", "l.crashes AS crashes_now"),
    ),
    flaw(
        "an attempt's number given back by the rescue",
        KILLS,
        {"overlap", "illegal path"},
        (
            f"{SQL}/rescue.sql",
            "crashes_now + 1 >= $5, deadline, timeout_seconds, attempt,",
            "crashes_now + 1 >= $5, deadline, timeout_seconds, attempt - 1,",
        ),
    ),
    flaw(
        "a retry that does not count",
        replace(LOAD, mix=FAILING),
        {"miscounted"},
        (f"{SQL}/retry_if_leased.sql", "retries + charged::int", "retries"),
    ),
    flaw(
        "a retry before its time",
        replace(LOAD, mix=FAILING, settings={**PATIENT, "backoff_base_seconds": 1, "backoff_cap_seconds": 4}),
        {"early"},
        (f"{SQL}/promote_due.sql", "due_at <= now()", "due_at <= now() + interval '1 h'"),
        (f"{SQL}/claim.sql", "o.due_at <= now()", "o.due_at <= now() + interval '1 h'"),
        (f"{SQL}/claim_due.sql", "o.due_at <= now()", "o.due_at <= now() + interval '1 h'"),
    ),
    flaw(
        "a replay without its gate",
        replace(LOAD, jobs=120, seconds=2, faults={"replay killed": 5}, mix={Part.PERMANENT: 100}),
        {"replay"},
        (
            f"{SQL}/replay_if_dead.sql",
            "USING gate g WHERE d.job_id = g.job_id",
            "USING picked g WHERE d.job_id = g.job_id",
        ),
    ),
    flaw(
        "a cancel that undoes what is done",
        replace(LOAD, cancel_share=1.0, cancel_seconds=1.0),
        {"illegal path"},
        (
            f"{SQL}/cancel_if_open.sql",
            "), ended AS (",
            f"), {UNDONE}), ended AS (",
        ),
        (
            f"{SQL}/cancel_if_open.sql",
            "UNION ALL SELECT * FROM running)",
            "UNION ALL SELECT * FROM running UNION ALL SELECT * FROM undone)",
        ),
    ),
    flaw(
        "a claim that leaves the row in the outbox",
        replace(LOAD, jobs=60),
        {"homes", "audit"},
        (
            f"{SQL}/claim.sql",
            "DELETE FROM outbox o USING picked p WHERE o.job_id = p.job_id RETURNING",
            "UPDATE outbox o SET due_at = o.due_at FROM picked p WHERE o.job_id = p.job_id RETURNING",
        ),
    ),
    flaw(
        "entries that nobody acknowledges",
        LOAD,
        {"broker", "audit"},
        ("app/transport/scripts/acknowledge.lua", "  if #found > 0 then", "  if #found > 1 then"),
    ),
    flaw(
        "a cursor that skips what comes back late",
        replace(LOAD, mix=FAILING, settings={**PATIENT, "backoff_base_seconds": 2, "backoff_cap_seconds": 4}),
        {"lost", "stuck"},
        ("workers/relaying/lane.py", "LATE_COMMIT_MS = 1_000", "LATE_COMMIT_MS = 0"),
        ("workers/relaying/lane.py", "marks = [UUID(int=0)] * PRIORITIES if full else [", "marks = ["),
        (
            "workers/relaying/lane.py",
            "self._marks[priority] = mark if full else max(mark, self._marks[priority])",
            "self._marks[priority] = max(mark, self._marks[priority])",
        ),
        NO_SWEEP,
    ),
    flaw(
        "leases judged by a local clock",
        replace(LOAD, mix=SLOWER, clocks={"relay": 3_600.0, "worker": 3_600.0}),
        {"charged"},
        ("workers/rescuer.py", "silent = now - sight.since", "silent = time.time() - seen.heartbeat_at.timestamp()"),
    ),
    flaw(
        "a rescue without a look at the worker's lock",
        replace(
            LOAD,
            jobs=120,
            mix={Part.SLOW: 100},
            slow_seconds=(2.0, 6.0),
            faults={hurt_name(Road.WORKER_POSTGRES, "black"): 1},
            lasting_seconds=5,
            settings={"suspect_seconds": 2, "lease_seconds": 12},
        ),
        {"charged"},
        (
            f"{SQL}/rescue.sql",
            "WHERE NOT need_lock OR pg_try_advisory_xact_lock($8, lock_key)",
            "WHERE NOT need_lock OR $8::int IS NOT NULL",
        ),
    ),
)
