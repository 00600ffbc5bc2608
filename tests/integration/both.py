"""One step at a time, done to the model of jobs and to the database through the product's own functions.

Each method does the same to both and compares the answers; `compare` compares everything that is on record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

from app.domain.effects import Grant
from app.domain.errors import Refused
from app.domain.outcomes import Bury, Done, Release, Retry
from app.domain.request import JobRequest
from app.domain.states import EffectState, Home, Policy, Reason, State
from app.settings import Settings
from app.store import fleet, reading
from app.store.audit import conservation, run_checks
from app.store.database import Connection, Database, Session, connect
from app.store.effects import Effects
from app.store.fleet import LOCK_CLASS, Fleet, Suspect
from app.store.leases import Ended, Leases
from app.store.relay import OutboxUpkeep
from app.usecases.cancel import cancel
from app.usecases.discard import discard
from app.usecases.replay import replay
from app.usecases.resolve import resolve_not_performed, resolve_performed
from app.usecases.retry import retry
from app.usecases.submit import Submitter
from tests.integration.each_state import FAILURE, hired
from tests.integration.model import Job, Jobs, Worker
from tests.integration.on_record import OnRecord, on_record
from tests.integration.world import DIGEST, KIND, World

QUEUE = "default"
NEVER_SECONDS = 1e9
EMPTIED = (
    "outbox", "leases", "dead_letters", "outcomes", "effects", "attempts", "idempotency_keys", "replay_items", "jobs",
)  # fmt: skip
WHY: dict[str, str] = {"reason": "test", "actor": "test"}
CHANGES = {
    "its time comes": ["outbox SET due_at = least(due_at, now() - interval '1 second')"],
    "its deadline passes": [
        f"{home} SET deadline = now() - interval '1 second'" for home in ("outbox", "leases", "dead_letters")
    ],
    "it hangs": ["leases SET run_until = now() - interval '1 second'"],
    "nobody comes": ["outbox SET due_at = now() - interval '8 days'"],
}

EFFECT_MOVES = ("intend", "intend", "record", "clear", "take over", "transact")

T = TypeVar("T")


@dataclass
class Ground:
    """A database, what speaks to it, and the event loop that this runs in."""

    runner: asyncio.Runner
    settings: Settings
    db: Database
    session: Session
    submitter: Submitter
    deadline: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(days=1))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def execute(self, statement: str, *args: Any) -> None:
        self.do(self.session.execute(statement, *args))


class Both:
    """The model and the database, side by side."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.db, self.settings, self.do = ground, ground.db, ground.settings, ground.do
        self.effects, self.upkeep = Effects(ground.db, ground.settings), OutboxUpkeep(ground.db)
        self.model = Jobs()
        self.worlds: list[World] = []
        self.submitted: dict[str, tuple[UUID, JobRequest]] = {}

    @property
    def leases(self) -> Leases:
        """What ends attempts: whose they are, the attempt says."""
        return Leases(self.db, self.settings, uuid4(), [])

    def leave(self) -> None:
        """The whole audit, and empty tables for the next one."""
        try:
            found = self.do(run_checks(self.db))
            assert not found, found
        finally:
            for table in EMPTIED:
                self.ground.execute(f"DELETE FROM {table}")
            self.ground.execute("SELECT pg_advisory_unlock_all()")

    # Callers and operators

    def submit(self, request: JobRequest, key: str | None) -> None:
        if key in self.submitted:
            job_id, first = self.submitted[key]
            same = all(asked in {None, was} for asked, was in zip(_asked(request), _asked(first), strict=True))
            assert self.do(self._send(request, key)) == ((job_id, True) if same else "idempotency-key-reuse")
            return
        made = self.do(self._send(request, key))
        assert isinstance(made, tuple)
        assert not made[1]
        state = State.SCHEDULED if request.delay_seconds else State.QUEUED
        self.model.jobs[made[0]] = Job(
            state, request.kind == KIND, request.priority or 0, request.max_retries or 0, request.deadline is not None
        )
        if key is not None:
            self.submitted[key] = (made[0], request)

    async def _send(self, request: JobRequest, key: str | None) -> tuple[UUID, bool] | str:
        try:
            made = await self.ground.submitter.submit(request, key=key)
        except Refused as refused:
            return refused.code
        finally:
            await self.ground.submitter.drain()
        return made.job.id, made.replayed

    def cancel(self, job_id: UUID) -> None:
        async def word() -> str:
            return "cancelled" if await cancel(self.db, job_id, reason=None, actor="test") else "before"

        assert self._said(word(), "") == self.model.cancel(job_id)

    def retry_by_caller(self, job_id: UUID) -> None:
        said = self._said(retry(self.db, self.settings, job_id, reason=None, actor="test"), "retried")
        assert said == self.model.retry_by_caller(job_id)

    def replay(self, replay_id: str) -> None:
        ids = list(self.model.jobs)
        answers = self.do(replay(self.db, ids, replay_id=replay_id, **WHY))
        assert [answer.outcome for answer in answers] == [self.model.replay(job_id, replay_id) for job_id in ids]

    def discard(self, job_id: UUID) -> None:
        [answer] = self.do(discard(self.db, [job_id], **WHY))
        assert answer.outcome == self.model.discard(job_id)

    def resolve(self, job_id: UUID, key: str, verdict: EffectState, *, forced: bool) -> None:
        if verdict is EffectState.RECORDED:
            resolved = resolve_performed(self.db, self.settings, job_id, key, result="1", **WHY)
        else:
            resolved = resolve_not_performed(self.db, self.settings, job_id, key, forced=forced, **WHY)
        assert self._said(resolved, "resolved") == self.model.resolve(job_id, key, verdict, forced=forced)

    def _said(self, work: Coroutine[Any, Any, str | None], done: str) -> str:
        """The word for what was done, or the code of the refusal."""
        try:
            return self.do(work) or done
        except Refused as refused:
            return refused.code

    # Workers

    def claim(self, worker: int, *, solo: bool) -> None:
        ids = list(self.model.jobs)
        claimed = self.do(self.worlds[worker].leases.claim(ids, solo=solo))
        assert claimed.fresh == self.model.workers[worker].may_claim
        assert {job.id for job in claimed.jobs} == self.model.claim(worker, ids, solo=solo)

    def claim_due(self, worker: int, limit: int) -> None:
        claimed = self.do(self.worlds[worker].leases.claim_due(QUEUE, limit, kinds=[KIND]))
        assert {job.id for job in claimed.jobs} == self.model.claim_due(worker, limit)

    def write(self, what: str, job_id: UUID, attempt: int, key: str = "", policy: Policy = Policy.REPEATABLE) -> None:
        """One of the writes of an attempt's worker, by name."""
        moves: dict[str, Callable[[], None]] = {
            "finish": lambda: self.finish(job_id, attempt),
            "fail": lambda: self.fail(job_id, attempt, at_once=False),
            "fail at once": lambda: self.fail(job_id, attempt, at_once=True),
            "bury": lambda: self.bury(job_id, attempt),
            "release": lambda: self.release(job_id, attempt),
            "intend": lambda: self.intend(job_id, attempt, key, policy),
            "record": lambda: self.record(job_id, attempt, key),
            "clear": lambda: self.clear(job_id, attempt, key),
            "take over": lambda: self.take_over(job_id, attempt, key),
            "transact": lambda: self.transact(job_id, attempt, key),
        }
        moves[what]()

    def finish(self, job_id: UUID, attempt: int) -> None:
        moved = self.do(self.leases.finish_if_leased([Ended(job_id, attempt, Done("1"))]))
        assert moved == self.model.end(job_id, attempt, self.model.finish)

    def fail(self, job_id: UUID, attempt: int, *, at_once: bool) -> None:
        """A transient failure; it is charged while the budget lasts, else taken for a quota."""
        job = self.model.jobs[job_id]
        again = Retry(FAILURE, 0 if at_once else NEVER_SECONDS, charged=job.retries < job.max_retries)
        moved = self.do(self.leases.retry_if_leased([Ended(job_id, attempt, again)]))
        assert moved == self.model.end(
            job_id, attempt, lambda job: self.model.retry(job, charged=again.charged, came=at_once)
        )

    def bury(self, job_id: UUID, attempt: int) -> None:
        death = Bury(Reason.PERMANENT_ERROR, FAILURE)
        moved = self.do(self.leases.bury_if_leased([Ended(job_id, attempt, death)]))
        assert moved == self.model.end(job_id, attempt, self.model.bury)

    def release(self, job_id: UUID, attempt: int) -> None:
        moved = self.do(self.leases.release_if_leased([Ended(job_id, attempt, Release("test"))]))
        assert moved == self.model.end(job_id, attempt, self.model.release)

    def intend(self, job_id: UUID, attempt: int, key: str, policy: Policy) -> None:
        answer = self.do(self.effects.intent(job_id, attempt, key, policy, DIGEST))
        assert answer.grant is self.model.intend(job_id, attempt, key, policy)

    def record(self, job_id: UUID, attempt: int, key: str) -> None:
        assert self.do(self.effects.record(job_id, attempt, key, "1")) == self.model.record(job_id, attempt, key)

    def clear(self, job_id: UUID, attempt: int, key: str) -> None:
        assert self.do(self.effects.clear(job_id, attempt, key)) == self.model.clear(job_id, attempt, key)

    def take_over(self, job_id: UUID, attempt: int, key: str) -> None:
        """Whatever other attempt wrote the intent, or the one before."""
        effect = self.model.jobs[job_id].effects.get(key)
        seen = effect.attempt if effect and effect.attempt != attempt else attempt - 1
        taken = self.do(self.effects.take_over(job_id, attempt, key, seen))
        assert taken == self.model.take_over(job_id, attempt, key, seen)

    def transact(self, job_id: UUID, attempt: int, key: str) -> None:
        calls: list[Connection] = []

        async def call(connection: Connection) -> str:
            calls.append(connection)
            return "1"

        answer = self.do(self.effects.transact(job_id, attempt, key, DIGEST, call))
        assert answer.grant is self.model.transact(job_id, attempt, key)
        assert len(calls) == (answer.grant is Grant.GRANTED)

    # The fleet and time

    def hire(self) -> None:
        self.worlds.append(self.do(hired(self.db, self.settings, self.ground.session, QUEUE)))
        self.model.workers.append(Worker())

    def silence(self, worker: int) -> None:
        self.model.workers[worker].heard = False
        silent = "UPDATE workers SET heartbeat_at = now() - interval '1 day' WHERE id = $1"
        self.ground.execute(silent, self.worlds[worker].worker_id)

    def cut(self, worker: int) -> None:
        self.model.workers[worker].locked = False
        free = "SELECT pg_advisory_unlock($1, lock_key) FROM workers WHERE id = $2"
        self.ground.execute(free, LOCK_CLASS, self.worlds[worker].worker_id)

    def hear(self, worker: int) -> None:
        self.model.workers[worker].heard = True
        self.do(self.worlds[worker].beat())

    def end(self, worker: int) -> None:
        self.model.workers[worker].gone = True
        self.do(Fleet(self.db).leave(self.worlds[worker].worker_id, "killed by signal 9"))

    def rescue(self, worker: int, *, need_lock: bool) -> None:
        lost = self.model.rescue(worker, need_lock=need_lock)
        assert self.do(self._rescue(self.worlds[worker].worker_id, need_lock)) == lost

    async def _rescue(self, worker_id: UUID, need_lock: bool) -> set[UUID]:
        watch = await connect(self.settings, "test watch")
        try:
            seen = [one for one in await fleet.observed(watch) if one.id == worker_id]
            suspects = [Suspect(one.id, one.heartbeat_at, need_lock) for one in seen]
            return {one.job_id for one in await fleet.rescue(watch, self.settings, suspects, uuid4())}
        finally:
            watch.terminate()

    def come_true(self, job_id: UUID, fact: str) -> None:
        if self.model.come_true(job_id, fact):
            for what in CHANGES[fact]:
                self.ground.execute(f"UPDATE {what} WHERE job_id = $1", job_id)

    def sweep(self) -> None:
        """What the leader of the relays does in passing."""
        overdue = self.do(fleet.rescue_overdue(self.ground.session, self.settings))
        assert {one.job_id for one in overdue} == self.model.rescue_overdue()
        assert self.do(self.upkeep.expire(100)) == self.model.expire()
        assert self.do(self.upkeep.bury_unknown(7, 100)) == self.model.bury_unknown()
        assert sum(self.do(self.upkeep.promote_due(100)).values()) == self.model.promote_due()

    # What must be true at any time

    def compare(self) -> None:
        rows = self.do(on_record(self.ground.session))
        ids = {world.worker_id: worker for worker, world in enumerate(self.worlds)}
        assert {id_: _seen(row, ids) for id_, row in rows.items()} == {
            id_: _expected(job) for id_, job in self.model.jobs.items()
        }
        keyed = sorted(job_id for job_id, row in rows.items() for _ in row.keys)
        assert keyed == sorted(job_id for job_id, _ in self.submitted.values())
        views = self.do(reading.hydrate(self.db, list(self.model.jobs), payloads=False))
        assert {id_: view.state for id_, view in views.items()} == {
            id_: State.QUEUED if job.due else job.state for id_, job in self.model.jobs.items()
        }
        assert self.do(conservation(self.db)) == []


def _asked(request: JobRequest) -> tuple[Any, ...]:
    return request.kind, request.priority, request.max_retries, request.delay_seconds, request.deadline


def _seen(row: OnRecord, workers: dict[UUID, int]) -> dict[str, Any]:
    effects = {key: (e["state"], e["policy"], e["attempt"], e["calls"]) for key, e in row.effects.items()}
    here: dict[str, Any] = {name: row.row.get(name) for name in ("attempt", "retries", "crashes", "releases", "reason")}
    return here | {
        "state": row.state,
        "solo": row.row.get("solo", False),
        "worker": workers[UUID(row.row["worker_id"])] if row.home is Home.LEASES else None,
        "deadline": row.home is not Home.OUTCOMES and row.row["deadline"] is not None,
        "ends": row.ends,
        "effects": effects,
        "replays": set(row.replays),
    }


def _expected(job: Job) -> dict[str, Any]:
    return {
        "state": job.state,
        "attempt": job.attempt,
        "retries": job.retries,
        "crashes": job.crashes,
        "releases": job.releases,
        "reason": job.reason,
        "solo": job.solo,
        "worker": job.worker if job.state is State.RUNNING else None,
        "deadline": job.deadline and job.state not in {State.DONE, State.CANCELLED},
        "ends": job.ends,
        "effects": {key: (e.state, e.policy, e.attempt, e.calls) for key, e in job.effects.items()},
        "replays": job.replays,
    }
