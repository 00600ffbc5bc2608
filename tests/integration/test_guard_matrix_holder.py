"""Every statement of a lease's holder, against a job in every state: what the table says happens, and nothing else.

A state that is not named must come out untouched to the last byte, in every table. The statements are sent with the
attempt that has (or last had) the lease, with the one before, and with one that nobody was given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from uuid import UUID

from app.domain.outcomes import Bury, Done, Release, Retry
from app.domain.states import Policy, Reason, State
from app.settings import Settings
from app.store.audit import run_checks
from app.store.database import Connection, Database
from app.store.leases import Ended
from tests.integration.each_state import BEFORE, FAILURE, MINE
from tests.integration.stage import (
    ALL_RELEASES,
    FORGOTTEN,
    LAST_CRASH,
    RUNNING,
    HolderOperation,
    Stage,
    sessions,
    staged,
)
from tests.integration.world import DIGEST

LEASES = {"my lease": 0, "an old lease": -1, "no lease": +1}

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
