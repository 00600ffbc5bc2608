"""What jobs do according to the lease protocol, in memory: small enough to be read against it.

Each method is one statement: it says what comes of it and changes what it must. There is no clock: that a time has
come is a fact which a test makes true here and on the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.effects import Grant
from app.domain.states import FINAL, TERMINAL, EffectState, Policy, Reason, State

MAX_CRASHES = 3
MAX_RELEASES = 2

WAITING = frozenset({State.SCHEDULED, State.QUEUED, State.RETRYING})
REPEATS = (Policy.REPEATABLE, Policy.REPEATABLE)
ENDED_BY_ITSELF = frozenset({"failed", "released"})

# What time may bring, and the field of a job that says so.
FACTS = {"its time comes": "came", "its deadline passes": "late", "it hangs": "overdue", "nobody comes": "long_due"}


@dataclass
class Worker:
    """A worker's incarnation. `heard`: its heartbeat is fresh. `locked`: its session holds its lock."""

    gone: bool = False
    heard: bool = True
    locked: bool = True

    @property
    def may_claim(self) -> bool:
        return self.heard and not self.gone

    @property
    def certainly_gone(self) -> bool:
        return self.gone or not (self.heard or self.locked)


@dataclass
class Effect:
    policy: Policy
    attempt: int
    worker: int
    state: EffectState = EffectState.INTENT
    calls: int = 1


@dataclass
class Job:
    """`came`: the time it was put off to. `late`: its deadline has passed. `overdue`: its attempt ran too long."""

    state: State
    known_kind: bool
    priority: int
    max_retries: int
    deadline: bool
    attempt: int = 0
    retries: int = 0
    crashes: int = 0
    releases: int = 0
    solo: bool = False
    reason: str | None = None
    worker: int | None = None
    came: bool = False
    late: bool = False
    overdue: bool = False
    long_due: bool = False
    ends: list[str] = field(default_factory=list)
    effects: dict[str, Effect] = field(default_factory=dict)
    replays: set[str] = field(default_factory=set)

    @property
    def due(self) -> bool:
        return self.state is State.QUEUED or (self.state in WAITING and self.came)

    @property
    def in_doubt(self) -> bool:
        return any(e.state is EffectState.INTENT and e.policy is not Policy.REPEATABLE for e in self.effects.values())

    def held(self, attempt: int) -> bool:
        return self.state is State.RUNNING and self.attempt == attempt

    def may(self, fact: str) -> bool:
        """Whether time may bring it to this job."""
        match fact:
            case "its time comes":
                return self.state in WAITING and not self.due
            case "its deadline passes":
                return self.deadline and self.state not in FINAL
            case "it hangs":
                return self.state is State.RUNNING
            case _:
                return self.state is State.QUEUED

    def lease(self, worker: int) -> None:
        self.attempt += 1
        self.state, self.worker, self.solo, self.overdue = State.RUNNING, worker, False, False
        self.came = self.long_due = False

    def wait(self, *, later: bool = False, came: bool = False) -> None:
        self.state = State.RETRYING if later else State.QUEUED
        self.came, self.long_due, self.worker, self.reason = came, False, None, None
        self.solo = self.crashes + 1 >= MAX_CRASHES

    def die(self, reason: Reason) -> None:
        self.state, self.reason, self.solo = State.DEAD, reason, False

    def crash(self, *, later: bool = False) -> None:
        """One more crash, and what comes of it."""
        self.crashes += 1
        if self.crashes >= MAX_CRASHES:
            self.die(Reason.CRASHES_EXHAUSTED)
        else:
            self.wait(later=later)


class Jobs:
    """All jobs, in the order of their ids, and the workers there ever were."""

    def __init__(self) -> None:
        self.jobs: dict[UUID, Job] = {}
        self.workers: list[Worker] = []

    # Whom something may happen to

    def among(self, *states: State) -> list[UUID]:
        return [job_id for job_id, job in self.jobs.items() if job.state in states]

    def open(self) -> list[UUID]:
        return self.among(*WAITING, State.RUNNING)

    def tried(self) -> list[UUID]:
        return [job_id for job_id, job in self.jobs.items() if job.attempt > 0]

    def claimable(self) -> list[UUID]:
        return [job_id for job_id, job in self.jobs.items() if job.due and self._claimable(job_id)]

    def holders(self) -> list[int]:
        held = {self.jobs[job_id].worker for job_id in self.among(State.RUNNING)}
        return sorted(worker for worker in held if worker is not None)

    def suspects(self) -> list[int]:
        """Those that hold something and that nobody heard of late."""
        return [worker for worker in self.holders() if self.workers[worker].gone or not self.workers[worker].heard]

    def may_come_true(self, fact: str) -> list[UUID]:
        return [job_id for job_id, job in self.jobs.items() if job.may(fact)]

    # What workers do

    def claim(self, worker: int, ids: Iterable[UUID], *, solo: bool) -> set[UUID]:
        ready = {id_ for id_ in ids if self.jobs[id_].due and self.jobs[id_].solo == solo}
        return self._lease(worker, [id_ for id_ in ready if self._claimable(id_)])

    def claim_due(self, worker: int, limit: int) -> set[UUID]:
        ready = [i for i, job in self.jobs.items() if job.state is State.QUEUED and not job.solo and self._claimable(i)]
        return self._lease(worker, sorted(ready, key=lambda i: (self.jobs[i].priority, i))[:limit])

    def _claimable(self, id_: UUID) -> bool:
        return self.jobs[id_].known_kind and not self.jobs[id_].late

    def _lease(self, worker: int, ids: Sequence[UUID]) -> set[UUID]:
        if not self.workers[worker].may_claim:
            return set()
        for id_ in ids:
            self.jobs[id_].lease(worker)
        return set(ids)

    def end(self, id_: UUID, attempt: int, move: Callable[[Job], None]) -> set[UUID]:
        """What finish, retry, bury and release have in common: only the lease's holder moves the job."""
        if not self.jobs[id_].held(attempt):
            return set()
        move(self.jobs[id_])
        return {id_}

    @staticmethod
    def finish(job: Job) -> None:
        job.state = State.DONE

    @staticmethod
    def retry(job: Job, *, charged: bool, came: bool) -> None:
        job.ends.append("failed")
        job.retries += charged
        job.releases += not charged
        job.wait(later=True, came=came)

    @staticmethod
    def bury(job: Job) -> None:
        job.ends.append("failed")
        job.die(Reason.PERMANENT_ERROR)

    @staticmethod
    def release(job: Job) -> None:
        job.ends.append("released")
        job.releases += 1
        if job.releases > MAX_RELEASES:
            job.crash()
        else:
            job.wait()

    def intend(self, id_: UUID, attempt: int, key: str, policy: Policy) -> Grant:
        job = self.jobs[id_]
        if not job.held(attempt) or job.worker is None:
            return Grant.FENCED
        was = job.effects.get(key)
        if was is None:
            job.effects[key] = Effect(policy, attempt, job.worker)
            return Grant.GRANTED
        mine = was.attempt == attempt and was.state is EffectState.INTENT
        anybody = was.state is EffectState.INTENT and (was.policy, policy) == REPEATS
        if not (mine or anybody or was.state is EffectState.CLEARED):
            return Grant.REFUSED
        job.effects[key] = Effect(policy, attempt, job.worker, calls=was.calls + (not mine))
        return Grant.GRANTED

    def record(self, id_: UUID, attempt: int, key: str) -> bool:
        effect = self._mine(id_, attempt, key)
        if effect is None or effect.state is EffectState.CLEARED:
            return False
        effect.state = EffectState.RECORDED
        return True

    def clear(self, id_: UUID, attempt: int, key: str) -> bool:
        effect = self._mine(id_, attempt, key)
        if effect is None or effect.state is not EffectState.INTENT:
            return False
        effect.state = EffectState.CLEARED
        return True

    def _mine(self, id_: UUID, attempt: int, key: str) -> Effect | None:
        effect = self.jobs[id_].effects.get(key)
        return effect if effect and effect.attempt == attempt and self.jobs[id_].held(attempt) else None

    def take_over(self, id_: UUID, attempt: int, key: str, seen: int) -> bool:
        job, effect = self.jobs[id_], self.jobs[id_].effects.get(key)
        if not job.held(attempt) or job.worker is None or effect is None:
            return False
        ended = 0 < seen <= len(job.ends) and job.ends[seen - 1] in ENDED_BY_ITSELF
        over = ended or effect.worker == job.worker or self.workers[effect.worker].certainly_gone
        if effect.attempt != seen or effect.state is not EffectState.INTENT or not over:
            return False
        effect.attempt, effect.worker = attempt, job.worker
        return True

    def transact(self, id_: UUID, attempt: int, key: str) -> Grant:
        job, was = self.jobs[id_], self.jobs[id_].effects.get(key)
        if not job.held(attempt) or job.worker is None:
            return Grant.FENCED
        if was is not None and was.state is not EffectState.CLEARED:
            return Grant.REFUSED
        policy, calls = (was.policy, was.calls + 1) if was else (Policy.REPEATABLE, 1)
        job.effects[key] = Effect(policy, attempt, job.worker, EffectState.RECORDED, calls)
        return Grant.GRANTED

    # What rescuers and time do

    def rescue(self, worker: int, *, need_lock: bool) -> set[UUID]:
        if need_lock and self.workers[worker].locked:
            return set()
        lost = {i: job for i, job in self.jobs.items() if job.state is State.RUNNING and job.worker == worker}
        for job in lost.values():
            job.ends.append("lost")
            job.crash(later=job.crashes > 0)
        return set(lost)

    def rescue_overdue(self) -> set[UUID]:
        hung = {i: job for i, job in self.jobs.items() if job.state is State.RUNNING and job.overdue}
        for job in hung.values():
            job.ends.append("timed_out")
            if job.late or job.retries >= job.max_retries:
                job.die(Reason.EXPIRED if job.late else Reason.TIMED_OUT)
            else:
                job.retries += 1
                job.wait(later=True)
        return set(hung)

    def expire(self) -> int:
        return self._bury([job for job in self.jobs.values() if job.state in WAITING and job.late], Reason.EXPIRED)

    def bury_unknown(self) -> int:
        lost = [j for j in self.jobs.values() if j.state is State.QUEUED and j.long_due and not j.known_kind]
        return self._bury(lost, Reason.UNKNOWN_KIND)

    def _bury(self, jobs: Sequence[Job], reason: Reason) -> int:
        for job in jobs:
            job.die(reason)
        return len(jobs)

    def promote_due(self) -> int:
        ripe = [job for job in self.jobs.values() if job.state in WAITING - {State.QUEUED} and job.came]
        for job in ripe:
            job.state = State.QUEUED
        return len(ripe)

    def come_true(self, id_: UUID, fact: str) -> bool:
        """Whether the fact can become true of this job; then it has."""
        job = self.jobs[id_]
        if not job.may(fact):
            return False
        setattr(job, FACTS[fact], True)
        return True

    # What callers and operators do: a word of praise or the code of the refusal

    def cancel(self, id_: UUID) -> str:
        job = self.jobs[id_]
        if job.state in TERMINAL:
            return "before" if job.state is State.CANCELLED else "job-terminal"
        if job.state is State.RUNNING:
            job.ends.append("cancelled")
        job.state, job.solo = State.CANCELLED, False
        return "cancelled"

    def retry_by_caller(self, id_: UUID) -> str:
        job = self.jobs[id_]
        if job.state is not State.DEAD:
            return self._not_dead(job)
        if job.retries >= job.max_retries and job.reason != Reason.UNKNOWN_KIND:
            return "retry-budget-exhausted"
        if job.in_doubt or job.late:
            return "effect-unknown" if job.in_doubt else "deadline-passed"
        job.retries += job.reason != Reason.UNKNOWN_KIND
        job.wait()
        return "retried"

    def replay(self, id_: UUID, replay_id: str) -> str:
        job = self.jobs[id_]
        if replay_id in job.replays:
            return "replayed_before"
        if job.state is not State.DEAD or job.in_doubt:
            return "effect-unknown" if job.state is State.DEAD else self._not_dead(job)
        job.replays.add(replay_id)
        job.retries = job.crashes = job.releases = 0
        job.deadline, job.late = job.deadline and not job.late, False
        job.wait()
        return "replayed"

    def discard(self, id_: UUID) -> str:
        job = self.jobs[id_]
        if job.state is not State.DEAD:
            return self._not_dead(job)
        job.state, job.reason = State.CANCELLED, "discarded"
        return "discarded"

    def resolve(self, id_: UUID, key: str, verdict: EffectState, *, forced: bool) -> str:
        job, effect = self.jobs[id_], self.jobs[id_].effects.get(key)
        if job.state is not State.DEAD:
            return self._not_dead(job)
        if effect is None or effect.state is not EffectState.INTENT:
            return "effect-not-found" if effect is None else "effect-resolved"
        if verdict is EffectState.CLEARED and not (forced or self.workers[effect.worker].certainly_gone):
            return "effect-in-flight"
        effect.state = verdict
        return "resolved"

    @staticmethod
    def _not_dead(job: Job) -> str:
        return "job-terminal" if job.state in TERMINAL else "job-not-dead"
