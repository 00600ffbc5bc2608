"""Every statement that changes a job, against a job in every state: what the table says happens, and nothing else.

The table of `app.domain.states`, statement by statement. A state that is not named must come out untouched to the
last byte, in every table. Statements of a lease's holder are sent with the attempt that has (or last had) the lease,
with the one before, and with one that nobody was given.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

from app.domain.outcomes import Bury, Done, Release, Retry
from app.domain.states import Policy, Reason, State
from app.settings import Settings
from app.store import fleet, jobs, operations
from app.store.audit import run_checks
from app.store.database import Connection, Database, Session, connect
from app.store.effects import Effects
from app.store.fleet import Fleet, Suspect
from app.store.leases import Ended, Leases
from app.store.relay import OutboxUpkeep
from tests.integration.each_state import (
    BEFORE,
    FAILURE,
    MINE,
    STATES,
    hired,
    new_job,
    one_in_each_state,
)
from tests.integration.on_record import change, on_record
from tests.integration.world import DIGEST, KIND, World

SCHEDULED, QUEUED, RETRYING, RUNNING, DEAD, DONE, CANCELLED = STATES
LEASES = {"my lease": 0, "an old lease": -1, "no lease": +1}

TIME_CAME = "UPDATE outbox SET due_at = now() - interval '1 second' WHERE job_id = ANY($1)"
LONG_DUE = "UPDATE outbox SET due_at = now() - interval '8 days' WHERE job_id = ANY($1)"
UNKNOWN = "UPDATE outbox SET kind = 'nobody.knows' WHERE job_id = ANY($1)"
LAST_START = "UPDATE outbox SET solo = true WHERE job_id = ANY($1)"
TOO_LATE = [
    f"UPDATE {home} SET deadline = now() - interval '1 second' WHERE job_id = ANY($1)"
    for home in ("outbox", "leases", "dead_letters")
]
OVERDUE = "UPDATE leases SET run_until = now() - interval '1 second' WHERE job_id = ANY($1)"
LAST_CRASH = "UPDATE leases SET crashes = 2 WHERE job_id = ANY($1)"
FIRST_CRASH = "UPDATE leases SET crashes = 0 WHERE job_id = ANY($1)"
ALL_CRASHES = "UPDATE dead_letters SET crashes = 3, retries = 0 WHERE job_id = ANY($1)"
ALL_RETRIES = [
    f"UPDATE {home} SET retries = max_retries, crashes = 0 WHERE job_id = ANY($1)"
    for home in ("leases", "dead_letters")
]
ALL_RELEASES = "UPDATE leases SET releases = 100 WHERE job_id = ANY($1)"
SURE = "UPDATE effects SET state = 'cleared' WHERE job_id = ANY($1) AND policy <> 'repeatable'"
REPLAYED = [
    "INSERT INTO replay_items SELECT 'replay 1', unnest($1::uuid[])",
    """INSERT INTO operator_actions (actor, action, job_id, details)
    SELECT 'test', 'replay', unnest($1::uuid[]), '{"replay_id": "replay 1"}'""",
]
FORGOTTEN = "UPDATE effects SET state = 'cleared' WHERE job_id = ANY($1)"

Operation = Callable[["Stage"], Awaitable[object]]
HolderOperation = Callable[["Stage", UUID, int], Awaitable[object]]


@dataclass(frozen=True)
class Stage:
    """One job in each state, the worker that holds the running one, and a session that watches it."""

    worker: World
    watch: Session
    queue: str
    jobs: Mapping[State, UUID]

    @property
    def ids(self) -> list[UUID]:
        return sorted(self.jobs.values())

    @property
    def leases(self) -> Leases:
        return self.worker.leases

    @property
    def effects(self) -> Effects:
        return Effects(self.worker.db, self.worker.settings)

    @property
    def upkeep(self) -> OutboxUpkeep:
        return OutboxUpkeep(self.worker.db)

    async def changes(self, operate: Operation) -> dict[State, str]:
        """What happens to each job that does not come out as it was."""
        before = await on_record(self.watch, self.ids)
        await operate(self)
        after = await on_record(self.watch, self.ids)
        changed = {state: change(before[job_id], after[job_id]) for state, job_id in self.jobs.items()}
        return {state: words for state, words in changed.items() if words}

    async def each(self, send: HolderOperation, offset: int) -> None:
        """Sends it for every job, with its last attempt plus `offset`."""
        for job_id, job in (await on_record(self.watch, self.ids)).items():
            await send(self, job_id, job.row["attempt"] + offset)


Row = tuple[Operation, dict[State, str], Sequence[str]]

HolderRow = tuple[HolderOperation, str, Sequence[str]]


def finish(on: Stage, job: UUID, attempt: int) -> Awaitable[object]:
    return on.leases.finish_if_leased([Ended(job, attempt, Done("1"))])


def retry(on: Stage, job: UUID, attempt: int, *, charged: bool = True) -> Awaitable[object]:
    return on.leases.retry_if_leased([Ended(job, attempt, Retry(FAILURE, 60, charged=charged))])


def retry_for_a_quota(on: Stage, job: UUID, attempt: int) -> Awaitable[object]:
    return retry(on, job, attempt, charged=False)


def bury(on: Stage, job: UUID, attempt: int) -> Awaitable[object]:
    return on.leases.bury_if_leased([Ended(job, attempt, Bury(Reason.INVALID_OUTPUT, FAILURE))])


def release(on: Stage, job: UUID, attempt: int) -> Awaitable[object]:
    return on.leases.release_if_leased([Ended(job, attempt, Release("a test"))])


def progress(on: Stage, job: UUID, attempt: int) -> Awaitable[object]:
    return on.leases.progress_if_leased(job, attempt, "1")


def intend(key: str, policy: Policy) -> HolderOperation:
    return lambda on, job, attempt: on.effects.intent(job, attempt, key, policy, DIGEST)


def record(key: str) -> HolderOperation:
    return lambda on, job, attempt: on.effects.record(job, attempt, key, "1")


def clear(key: str) -> HolderOperation:
    return lambda on, job, attempt: on.effects.clear(job, attempt, key)


def take_over(seen_attempt: int) -> HolderOperation:
    return lambda on, job, attempt: on.effects.take_over(job, attempt, BEFORE, seen_attempt)


def transact(key: str) -> HolderOperation:
    async def call(_: Connection) -> str:
        return "1"

    return lambda on, job, attempt: on.effects.transact(job, attempt, key, DIGEST, call)


# With the running job's own lease; with any other lease, and to any other job, nothing.
HOLDER: dict[str, HolderRow] = {
    "finish": (finish, "done", ()),
    "retry": (retry, "retrying r+1 end=failed", ()),
    "retry before the last start": (retry, "retrying r+1 solo end=failed", [LAST_CRASH]),
    "retry for a quota": (retry_for_a_quota, "retrying l+1 end=failed", ()),
    "bury": (bury, "dead invalid_output end=failed", ()),
    "release": (release, "queued l+1 end=released", ()),
    "release past the cap": (release, "queued c+1 l+1 solo end=released", [ALL_RELEASES]),
    "release past both caps": (release, "dead crashes_exhausted c+1 l+1 end=released", [ALL_RELEASES, LAST_CRASH]),
    "progress": (progress, "progress", ()),
    "intend": (intend("new", Policy.AT_MOST_ONCE), "new=intent", ()),
    "intend what another attempt may be doing": (intend(BEFORE, Policy.RECONCILE), "", ()),
    "intend what is cleared": (intend(BEFORE, Policy.RECONCILE), "before=intent", [FORGOTTEN]),
    "record": (record(MINE), "mine=recorded", ()),
    "record what is cleared": (record(MINE), "", [FORGOTTEN]),
    "record for another attempt": (record(BEFORE), "", ()),
    "clear": (clear(MINE), "mine=cleared", ()),
    "clear for another attempt": (clear(BEFORE), "", ()),
    "take over": (take_over(3), "before+1", ()),
    "take over what another attempt has": (take_over(2), "", ()),
    "transact": (transact("new"), "new=recorded", ()),
    "transact what is begun": (transact(MINE), "", ()),
}


def claim(stage: Stage) -> Awaitable[object]:
    return stage.leases.claim(stage.ids)


def claim_solo(stage: Stage) -> Awaitable[object]:
    return stage.leases.claim(stage.ids, solo=True)


def claim_due(stage: Stage) -> Awaitable[object]:
    return stage.leases.claim_due(stage.queue, 100, kinds=[KIND])


def claim_overdue(stage: Stage) -> Awaitable[object]:
    return stage.leases.claim_due(stage.queue, 100, kinds=[KIND], overdue_seconds=60)


async def claim_of_other_kinds(stage: Stage) -> None:
    await Leases(stage.worker.db, stage.worker.settings, stage.worker.worker_id, ["other"]).claim(stage.ids)
    await stage.leases.claim_due(stage.queue, 100, kinds=["other"])
    await stage.leases.claim_due(f"{stage.queue}, another", 100, kinds=[KIND])


async def claim_by_one_who_left(stage: Stage) -> None:
    await Fleet(stage.worker.db).leave(stage.worker.worker_id, "done")
    await claim(stage)
    await claim_due(stage)


async def claim_by_one_unheard(stage: Stage) -> None:
    await stage.worker.execute(
        "UPDATE workers SET heartbeat_at = now() - interval '1 hour' WHERE id = $1", stage.worker.worker_id
    )
    await claim(stage)
    await claim_due(stage)


async def cancel(stage: Stage) -> None:
    for job_id in stage.ids:
        await operations.cancel_if_open(stage.worker.db, job_id, None, "test")


async def retry_by_a_caller(stage: Stage) -> None:
    for job_id in stage.ids:
        await operations.retry_if_in_budget(stage.worker.db, job_id, None, "test", stage.worker.settings.max_crashes)


def replay(stage: Stage) -> Awaitable[object]:
    return operations.replay_if_dead(stage.worker.db, "replay 1", stage.ids, "a test", "test")


def discard(stage: Stage) -> Awaitable[object]:
    return operations.discard_if_dead(stage.worker.db, stage.ids, "a test", "test")


async def performed(stage: Stage) -> None:
    for job_id in stage.ids:
        await operations.resolve_performed(stage.worker.db, job_id, BEFORE, "1", "a test", "test")


async def not_performed(stage: Stage, *, forced: bool = False) -> None:
    for job_id in stage.ids:
        await operations.resolve_not_performed(stage.worker.db, job_id, BEFORE, 60, "a test", "test", forced=forced)


def not_performed_forced(stage: Stage) -> Awaitable[object]:
    return not_performed(stage, forced=True)


async def not_performed_by_one_who_left(stage: Stage) -> None:
    await Fleet(stage.worker.db).leave(stage.worker.worker_id, "killed by signal 9")
    await not_performed(stage)


async def rescue(stage: Stage, *, need_lock: bool = False, stale: bool = False, me: UUID | None = None) -> None:
    [seen] = [one for one in await fleet.observed(stage.watch) if one.id == stage.worker.worker_id]
    if stale:
        await stage.worker.beat()
    suspect = Suspect(seen.id, seen.heartbeat_at, need_lock)
    await fleet.rescue(stage.watch, stage.worker.settings, [suspect], me or uuid4())


def rescue_with_its_lock_held(stage: Stage) -> Awaitable[object]:
    return rescue(stage, need_lock=True)


def rescue_after_it_was_heard(stage: Stage) -> Awaitable[object]:
    return rescue(stage, stale=True)


def rescue_of_myself(stage: Stage) -> Awaitable[object]:
    return rescue(stage, me=stage.worker.worker_id)


def rescue_overdue(stage: Stage) -> Awaitable[object]:
    return fleet.rescue_overdue(stage.watch, stage.worker.settings)


def expire(stage: Stage) -> Awaitable[object]:
    return stage.upkeep.expire(10_000)


def bury_unknown(stage: Stage) -> Awaitable[object]:
    return stage.upkeep.bury_unknown(7, 10_000)


def promote_due(stage: Stage) -> Awaitable[object]:
    return stage.upkeep.promote_due(10_000)


async def submit_again(stage: Stage) -> None:
    again = [new_job(stage.queue, state) for state in STATES]
    assert await jobs.insert(stage.worker.db, again) == [None] * len(again)


OTHERS: dict[str, Row] = {
    "claim": (claim, {QUEUED: "running a+1"}, ()),
    "claim, its time came": (
        claim,
        {SCHEDULED: "running a+1", QUEUED: "running a+1", RETRYING: "running a+1"},
        [TIME_CAME],
    ),
    "claim, its deadline passed": (claim, {}, TOO_LATE),
    "claim before the last start": (claim, {}, [LAST_START]),
    "claim solo": (claim_solo, {}, ()),
    "claim solo before the last start": (claim_solo, {QUEUED: "running a+1"}, [LAST_START]),
    "claim_due": (claim_due, {QUEUED: "running a+1"}, ()),
    "claim_due, its deadline passed": (claim_due, {}, TOO_LATE),
    "claim_due before the last start": (claim_due, {}, [LAST_START]),
    "claim_due, not for long": (claim_overdue, {}, ()),
    "claim_due, for long": (claim_overdue, {QUEUED: "running a+1"}, [LONG_DUE]),
    "claim of other kinds": (claim_of_other_kinds, {}, ()),
    "claim by one who left": (claim_by_one_who_left, {}, ()),
    "claim by one unheard": (claim_by_one_unheard, {}, ()),
    "cancel": (
        cancel,
        {
            SCHEDULED: "cancelled by=cancel",
            QUEUED: "cancelled by=cancel",
            RETRYING: "cancelled by=cancel",
            RUNNING: "cancelled end=cancelled by=cancel",
        },
        (),
    ),
    "replay": (replay, {DEAD: "queued r-1 c-1 l-1 by=replay"}, [SURE]),
    "replay in doubt": (replay, {}, ()),
    "replay under the same id": (replay, {}, [SURE, *REPLAYED]),
    "retry by a caller": (retry_by_a_caller, {DEAD: "queued r+1 by=retry"}, [SURE]),
    "retry by a caller after all crashes": (retry_by_a_caller, {DEAD: "queued r+1 solo by=retry"}, [SURE, ALL_CRASHES]),
    "retry by a caller in doubt": (retry_by_a_caller, {}, ()),
    "retry by a caller, none left": (retry_by_a_caller, {}, [SURE, *ALL_RETRIES]),
    "retry by a caller, its deadline passed": (retry_by_a_caller, {}, [SURE, *TOO_LATE]),
    "discard": (discard, {DEAD: "cancelled discarded by=discard"}, ()),
    "resolve performed": (performed, {DEAD: "before=recorded by=resolve"}, ()),
    "resolve performed, cleared": (performed, {}, [SURE]),
    "resolve not performed": (not_performed, {}, ()),
    "resolve not performed, forced": (not_performed_forced, {DEAD: "before=cleared by=resolve"}, ()),
    "resolve not performed, its writer left": (not_performed_by_one_who_left, {DEAD: "before=cleared by=resolve"}, ()),
    "rescue": (rescue, {RUNNING: "retrying c+1 solo end=lost"}, ()),
    "rescue, the first": (rescue, {RUNNING: "queued c+1 end=lost"}, [FIRST_CRASH]),
    "rescue, the last": (rescue, {RUNNING: "dead crashes_exhausted c+1 end=lost"}, [LAST_CRASH]),
    "rescue with its lock held": (rescue_with_its_lock_held, {}, ()),
    "rescue after it was heard": (rescue_after_it_was_heard, {}, ()),
    "rescue of myself": (rescue_of_myself, {}, ()),
    "rescue_overdue in time": (rescue_overdue, {}, ()),
    "rescue_overdue": (rescue_overdue, {RUNNING: "retrying r+1 end=timed_out"}, [OVERDUE]),
    "rescue_overdue before the last start": (
        rescue_overdue,
        {RUNNING: "retrying r+1 solo end=timed_out"},
        [OVERDUE, LAST_CRASH],
    ),
    "rescue_overdue, no retries left": (
        rescue_overdue,
        {RUNNING: "dead timed_out end=timed_out"},
        [OVERDUE, *ALL_RETRIES],
    ),
    "rescue_overdue, its deadline passed": (
        rescue_overdue,
        {RUNNING: "dead expired end=timed_out"},
        [OVERDUE, *TOO_LATE],
    ),
    "expire": (expire, dict.fromkeys((SCHEDULED, QUEUED, RETRYING), "dead expired"), TOO_LATE),
    "bury_unknown": (bury_unknown, {QUEUED: "dead unknown_kind"}, [LONG_DUE, UNKNOWN]),
    "bury_unknown, known": (bury_unknown, {}, [LONG_DUE]),
    "bury_unknown, not for long": (bury_unknown, {}, [UNKNOWN]),
    "promote_due": (promote_due, {SCHEDULED: "queued", RETRYING: "queued"}, [TIME_CAME]),
    "promote_due before its time": (promote_due, {}, ()),
    "submit with a taken key": (submit_again, {}, ()),
}


@asynccontextmanager
async def sessions(settings: Settings) -> AsyncIterator[tuple[Session, Session]]:
    """One that holds the locks of workers, and one that holds none."""
    locks, watch = await connect(settings, "test worker"), await connect(settings, "test watch")
    yield locks, watch
    locks.terminate()
    watch.terminate()


async def staged(db: Database, settings: Settings, locks: Session, watch: Session, queue: str, before: Sequence[str]):
    """A stage of its own for a row of the table, after the statements `before` over its jobs."""
    worker = await hired(db, settings, locks, queue)
    stage = Stage(worker, watch, queue, await one_in_each_state(worker, queue))
    for statement in before:
        await worker.execute(statement, stage.ids)
    await worker.beat()
    return stage


async def test_only_the_holder_of_the_lease_moves_the_running_job_and_nothing_else_moves(
    db: Database, settings: Settings
) -> None:
    seen: dict[str, dict[State, str]] = {}
    async with sessions(settings) as (locks, watch):
        for name, (send, _, before) in HOLDER.items():
            for whose, offset in LEASES.items():
                stage = await staged(db, settings, locks, watch, f"{name}, {whose}", before)
                seen[stage.queue] = await stage.changes(lambda on, send=send, offset=offset: on.each(send, offset))
    expected = {
        f"{name}, {whose}": {RUNNING: words} if words and whose == "my lease" else {}
        for name, (_, words, _) in HOLDER.items()
        for whose in LEASES
    }
    assert seen == expected
    assert await run_checks(db) == []


async def test_what_callers_operators_and_time_do_follows_the_table_of_states(db: Database, settings: Settings) -> None:
    seen: dict[str, dict[State, str]] = {}
    async with sessions(settings) as (locks, watch):
        for name, (operate, _, before) in OTHERS.items():
            stage = await staged(db, settings, locks, watch, name, before)
            seen[name] = await stage.changes(operate)
    assert seen == {name: moves for name, (_, moves, _) in OTHERS.items()}
    assert await run_checks(db) == []
