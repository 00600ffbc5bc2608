"""Jobs on PostgreSQL do what the model of the lease protocol does, whatever happens to them in whatever order.

After every step the rows of every job are compared with the model, and with what a caller reads; each job has exactly
one home. `SCALE=full` walks for many times as long, and shrinks what it finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from app.domain.kinds import Defaults, Kind
from app.domain.request import JobRequest
from app.domain.states import EffectState, Policy, State
from app.settings import Settings
from app.store import kinds
from app.store.database import Database, Session, connect
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitter
from tests.fundamentals.scale import FULL, scaled
from tests.integration.both import FACTS, NEVER_SECONDS, Both, Ground
from tests.integration.model import MAX_CRASHES, MAX_RELEASES
from tests.integration.world import KIND

UNKNOWN_KIND = "test.unknown"
JOBS_MAX = 4
WORKERS_MAX = 4

nth = st.integers(0, 11)
booleans = st.booleans()
effect_keys = st.sampled_from(["pay", "mail"])
attempts = st.sampled_from([0, 0, 0, -1, 1])


@pytest.fixture
def ground(settings: Settings) -> Iterator[Ground]:
    never = {"backoff_base_seconds": NEVER_SECONDS, "backoff_cap_seconds": NEVER_SECONDS}
    slow = {"suspect_seconds": 1_000.0, "lease_seconds": 2_000.0}
    settings = settings.model_copy(update={"max_crashes": MAX_CRASHES, "max_releases": MAX_RELEASES, **never, **slow})

    async def opened() -> tuple[Database, Session]:
        db = await Database.open(settings, "test", size_max=2)
        defaults = Defaults(timeout_seconds=3_600, max_retries=1)
        await kinds.publish(db, [Kind(name, "1", {}, {}, defaults) for name in (KIND, UNKNOWN_KIND)])
        return db, await connect(settings, "test worker")

    with asyncio.Runner() as runner:
        db, session = runner.run(opened())
        yield Ground(runner, settings, db, session, Submitter(db, Catalog(db), settings))
        session.terminate()
        runner.run(db.close())


class Walk(RuleBasedStateMachine):
    """One walk through what may happen to a few jobs."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self.ground, self.both = ground, Both(ground)
        self.model = self.both.model
        for max_retries in (2, 1):
            self.both.hire()
            self.both.submit(JobRequest(KIND, {}, priority=5, max_retries=max_retries), None)

    def teardown(self) -> None:
        self.both.leave()

    @invariant()
    def database_and_model_agree(self) -> None:
        self.both.compare()

    @rule(
        key=st.sampled_from([None, "a", "b"]),
        kind=st.sampled_from([KIND, KIND, UNKNOWN_KIND]),
        priority=st.sampled_from([0, 5]),
        max_retries=st.integers(0, 2),
        delayed=booleans,
        deadline=booleans,
    )
    def submit(
        self, key: str | None, kind: str, priority: int, max_retries: int, delayed: bool, deadline: bool
    ) -> None:
        request = JobRequest(
            kind,
            {},
            priority=priority,
            max_retries=max_retries,
            delay_seconds=3_600 if delayed else None,
            deadline=self.ground.deadline if deadline else None,
        )
        if key in self.both.submitted or len(self.model.jobs) < JOBS_MAX:
            self.both.submit(request, key)

    @rule(nth=nth, wish=st.sampled_from(["cancel", "retry", "retry", "replay", "replay", "discard"]))
    def ask(self, nth: int, wish: str) -> None:
        match wish:
            case "cancel":
                self.both.cancel(self._job(nth, State.RUNNING))
            case "retry":
                self.both.retry_by_caller(self._job(nth, State.DEAD))
            case "replay":
                self.both.replay(f"replay {nth % 3}")
            case _:
                self.both.discard(self._job(nth, State.DEAD))

    @rule(nth=nth, key=effect_keys, verdict=st.sampled_from(["performed", "not performed", "not performed, forced"]))
    def resolve(self, nth: int, key: str, verdict: str) -> None:
        state = EffectState.RECORDED if verdict == "performed" else EffectState.CLEARED
        self.both.resolve(self._job(nth, State.DEAD), key, state, forced=verdict.endswith("forced"))

    @rule(worker=nth, by=st.sampled_from(["ids", "ids", "queue"]))
    def claim(self, worker: int, by: str) -> None:
        if by == "ids":
            self.both.claim(worker % len(self.both.worlds), solo=self._only_solo())
        else:
            self.both.claim_due(worker % len(self.both.worlds), 1 + worker % 3)

    @rule(nth=nth, offset=attempts, how=st.sampled_from(["finish", "fail", "fail at once", "bury", "release"]))
    def end(self, nth: int, offset: int, how: str) -> None:
        job_id, attempt = self._attempt(nth, offset)
        match how:
            case "finish":
                self.both.finish(job_id, attempt)
            case "bury":
                self.both.bury(job_id, attempt)
            case "release":
                self.both.release(job_id, attempt)
            case _:
                self.both.fail(job_id, attempt, at_once=how == "fail at once")

    @rule(
        nth=nth,
        offset=attempts,
        key=effect_keys,
        move=st.sampled_from(["intend", "intend", "record", "clear", "take over", "transact"]),
        policy=st.sampled_from(list(Policy)),
    )
    def perform(self, nth: int, offset: int, key: str, move: str, policy: Policy) -> None:
        job_id, attempt = self._attempt(nth, offset)
        match move:
            case "intend":
                self.both.intend(job_id, attempt, key, policy)
            case "record":
                self.both.record(job_id, attempt, key)
            case "clear":
                self.both.clear(job_id, attempt, key)
            case "take over":
                self.both.take_over(job_id, attempt, key)
            case _:
                self.both.transact(job_id, attempt, key)

    @precondition(lambda self: len(self.both.worlds) < WORKERS_MAX)
    @rule()
    def hire(self) -> None:
        self.both.hire()

    @rule(worker=nth, fate=st.sampled_from(["goes silent", "loses its session", "is heard", "ends"]), at_once=booleans)
    def lose(self, worker: int, fate: str, at_once: bool) -> None:
        """Something happens to a worker, and perhaps somebody looks after it at once."""
        worker %= len(self.both.worlds)
        match fate:
            case "goes silent":
                self.both.silence(worker)
            case "loses its session":
                self.both.cut(worker)
            case "is heard":
                self.both.hear(worker)
            case _:
                self.both.end(worker)
        if at_once:
            self.rescue(worker, need_lock=True)

    @rule(worker=nth, need_lock=booleans)
    def rescue(self, worker: int, need_lock: bool) -> None:
        """By one who saw the worker leave, or saw it silent for the time that the protocol asks."""
        worker %= len(self.both.worlds)
        known = self.model.workers[worker]
        if known.gone or not known.heard:
            self.both.rescue(worker, need_lock=need_lock and not known.gone)

    @rule(nth=nth, fact=st.sampled_from(list(FACTS)), at_once=booleans)
    def time_passes(self, nth: int, fact: str, at_once: bool) -> None:
        """A time comes, and perhaps the relay sees it at once."""
        self.both.come_true(self._job(nth, State.RUNNING if fact == "it hangs" else State.RETRYING), fact)
        if at_once:
            self.both.sweep()

    def _job(self, nth: int, rather: State) -> UUID:
        """The nth job; twice out of three, among those in a state where something happens."""
        ids = list(self.model.jobs)
        apt = [job_id for job_id in ids if self.model.jobs[job_id].state is rather]
        pool = apt if apt and nth % 3 else ids
        return pool[nth % len(pool)]

    def _attempt(self, nth: int, offset: int) -> tuple[UUID, int]:
        """A job and its last attempt, or the one before or after. There is one that runs, if any can."""
        if not any(job.state is State.RUNNING for job in self.model.jobs.values()):
            self.both.claim(nth % len(self.both.worlds), solo=self._only_solo())
        job_id = self._job(nth, State.RUNNING)
        return job_id, self.model.jobs[job_id].attempt + offset

    def _only_solo(self) -> bool:
        due = [job.solo for job in self.model.jobs.values() if job.due]
        return bool(due) and all(due)


@pytest.mark.timeout(3_600 if FULL else 300)
def test_jobs_on_record_follow_the_model_of_the_protocol(ground: Ground) -> None:
    class Here(Walk):
        def __init__(self) -> None:
            super().__init__(ground)

    run_state_machine_as_test(
        Here,
        settings=hypothesis_settings(
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink] if FULL else [Phase.generate],
            max_examples=scaled(24, 1_000),
            stateful_step_count=scaled(40, 80),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )
