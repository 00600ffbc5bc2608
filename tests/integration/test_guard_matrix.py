"""Every statement of callers, operators and time, against a job in every state: what the table says happens, no more.

The table of `app.domain.states`, statement by statement. A state that is not named must come out untouched to the
last byte, in every table. The statements of a lease's holder are in `test_guard_matrix_holder`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from uuid import UUID, uuid4

from app.domain.states import State
from app.settings import Settings
from app.store import fleet, jobs, operations
from app.store.audit import run_checks
from app.store.database import Database
from app.store.fleet import Fleet, Suspect
from app.store.leases import Leases
from tests.integration.each_state import BEFORE, STATES, new_job
from tests.integration.stage import (
    ALL_CRASHES,
    ALL_RETRIES,
    DEAD,
    FIRST_CRASH,
    LAST_CRASH,
    LAST_START,
    LONG_DUE,
    OVERDUE,
    QUEUED,
    REPLAYED,
    RETRYING,
    RUNNING,
    SCHEDULED,
    SURE,
    TIME_CAME,
    TOO_LATE,
    UNKNOWN,
    Operation,
    Stage,
    sessions,
    staged,
)
from tests.integration.world import KIND

Row = tuple[Operation, dict[State, str], Sequence[str]]


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


async def test_what_callers_operators_and_time_do_follows_the_table_of_states(db: Database, settings: Settings) -> None:
    seen: dict[str, dict[State, str]] = {}
    async with sessions(settings) as (locks, watch):
        for name, (operate, _, before) in OTHERS.items():
            stage = await staged(db, settings, locks, watch, name, before)
            seen[name] = await stage.changes(operate)
    assert seen == {name: moves for name, (_, moves, _) in OTHERS.items()}
    assert await run_checks(db) == []
