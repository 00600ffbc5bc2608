"""One job in each state for a row of the guard matrix, and what a statement does to each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from app.domain.states import State
from app.settings import Settings
from app.store.database import Database, Session, connect
from app.store.effects import Effects
from app.store.leases import Leases
from app.store.relay import OutboxUpkeep
from tests.integration.each_state import STATES, hired, one_in_each_state
from tests.integration.on_record import change, on_record
from tests.integration.world import World

SCHEDULED, QUEUED, RETRYING, RUNNING, DEAD, DONE, CANCELLED = STATES

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
