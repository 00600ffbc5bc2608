"""Jobs on PostgreSQL do what the model of the lease protocol does, whatever happens to them in whatever order.

After every step the rows of every job are compared with the model, and with what a caller reads; each job has exactly
one home. `SCALE=full` walks for many times as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, note
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from app.domain.kinds import Defaults, Kind
from app.domain.request import JobRequest
from app.domain.states import EffectState, Policy, State
from app.settings import Settings
from app.store import kinds
from app.store.database import Database, Session, connect
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitter
from tests.fundamentals.scale import FULL, scaled
from tests.integration.both import EFFECT_MOVES, NEVER_SECONDS, Both, Ground
from tests.integration.model import FACTS, MAX_CRASHES, MAX_RELEASES
from tests.integration.world import KIND

UNKNOWN_KIND = "test.unknown"
KEYS = ["pay", "mail"]
OPEN_MAX = 3

T = TypeVar("T")

# How often a step is offered, when it can change something.
WEIGHTS = {
    "submit": 3,
    "cancel": 1,
    "retry_by_caller": 3,
    "replay": 2,
    "discard": 1,
    "resolve": 3,
    "claim": 8,
    "end": 8,
    "perform": 8,
    "late": 4,
    "happens": 4,
    "rescue": 8,
    "time_passes": 3,
    "sweep": 1,
}
ENDINGS = ("finish", "fail", "fail", "fail at once", "bury", "release", "release")
WRITES = ("finish", "fail", "bury", "release", *EFFECT_MOVES)
FATES = ("is silent", "is silent and cut", "is cut", "is heard", "ends", "ends")
VERDICTS = ("performed", "not performed", "not performed, forced")


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
    """One walk through what may happen to a few jobs, by steps that change something, but for `late`.

    One rule makes them all, from the walk's own seed: what is offered depends on the model, and draws of Hypothesis
    repeat themselves too much to get far. `note` tells the story of a walk that failed.
    """

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self.ground, self.both = ground, Both(ground)
        self.model = self.both.model
        self.random: Random

    def teardown(self) -> None:
        self.both.leave()

    @invariant()
    def database_and_model_agree(self) -> None:
        self.both.compare()

    @initialize(seed=st.integers(0, 2**64 - 1))
    def begin(self, seed: int) -> None:
        self.random = Random(seed)

    @rule()
    def step(self) -> None:
        offered = [name for name, can in self._offers().items() if can for _ in range(WEIGHTS[name])]
        getattr(self, self._one_of(offered))()

    def _offers(self) -> dict[str, bool]:
        """Which steps can change something now."""
        model = self.model
        dead, running = model.among(State.DEAD), model.among(State.RUNNING)
        return {
            "submit": len(model.open()) < OPEN_MAX,
            "cancel": bool(model.open()),
            "retry_by_caller": bool(dead),
            "replay": bool(dead),
            "discard": bool(dead),
            "resolve": any(model.jobs[job_id].effects for job_id in dead),
            "claim": bool(model.claimable()),
            "end": bool(running),
            "perform": bool(running),
            "late": bool(model.tried()),
            "happens": bool(running),
            "rescue": bool(model.suspects()),
            "time_passes": any(model.may_come_true(fact) for fact in FACTS),
            "sweep": True,
        }

    # Callers and operators

    def submit(self) -> None:
        request = JobRequest(
            self._one_of([KIND, KIND, KIND, UNKNOWN_KIND]),
            {},
            priority=self._one_of([0, 5]),
            max_retries=self._one_of([0, 1, 2]),
            delay_seconds=self._one_of([None, None, 3_600]),
            deadline=self._one_of([None, self.ground.deadline]),
        )
        self.both.submit(request, self._one_of([None, None, "a", "b"]))

    def cancel(self) -> None:
        self.both.cancel(self._one_of(self.model.open()))

    def retry_by_caller(self) -> None:
        self.both.retry_by_caller(self._one_of(self.model.among(State.DEAD)))

    def replay(self) -> None:
        self.both.replay(self._one_of(["replay 1", "replay 2"]))

    def discard(self) -> None:
        self.both.discard(self._one_of(self.model.among(State.DEAD)))

    def resolve(self) -> None:
        dead = self.model.among(State.DEAD)
        job_id = self._one_of([job_id for job_id in dead if self.model.jobs[job_id].effects])
        key = self._one_of(KEYS)
        verdict = self._one_of(VERDICTS)
        state = EffectState.RECORDED if verdict == "performed" else EffectState.CLEARED
        self.both.resolve(job_id, key, state, forced=verdict.endswith("forced"))

    # Workers

    def claim(self) -> None:
        """All that is due, as the last start when nothing else is; mostly by one who may."""
        able = [worker for worker, known in enumerate(self.model.workers) if known.may_claim]
        if len(able) < self._one_of([1, 2]):
            self.both.hire()
            able.append(len(self.both.worlds) - 1)
        worker = self._one_of([*able, *able, *range(len(self.both.worlds))])
        last = all(self.model.jobs[job_id].solo for job_id in self.model.claimable())
        if self._one_of(["ids", "ids", "queue"]) == "ids":
            self.both.claim(worker, solo=last)
        else:
            self.both.claim_due(worker, self._one_of([1, 2]))

    def end(self) -> None:
        job_id = self._one_of(self.model.among(State.RUNNING))
        self.both.write(self._one_of(ENDINGS), job_id, self.model.jobs[job_id].attempt)

    def perform(self) -> None:
        job_id = self._one_of(self.model.among(State.RUNNING))
        attempt = self.model.jobs[job_id].attempt
        self.both.write(self._one_of(EFFECT_MOVES), job_id, attempt, self._one_of(KEYS), self._one_of(list(Policy)))

    def late(self) -> None:
        """A worker that has lost its lease, or has ended the attempt already, writes about it once more."""
        job_id = self._one_of([*self.model.tried(), *self.model.among(State.RUNNING)])
        job = self.model.jobs[job_id]
        back = 1 if job.state is State.RUNNING else self._one_of([0, 0, 1])
        self.both.write(self._one_of(WRITES), job_id, job.attempt - back, self._one_of(KEYS), Policy.REPEATABLE)

    # The fleet and time

    def happens(self) -> None:
        """Something becomes of a worker that holds a job."""
        worker, fate = self._one_of(self.model.holders()), self._one_of(FATES)
        if "silent" in fate:
            self.both.silence(worker)
        if "cut" in fate:
            self.both.cut(worker)
        if fate == "is heard":
            self.both.hear(worker)
        if fate == "ends":
            self.both.end(worker)

    def rescue(self) -> None:
        """By one who saw the worker leave, or saw it silent for the time that the protocol asks."""
        worker = self._one_of(self.model.suspects())
        need_lock = not self.model.workers[worker].gone and self._one_of([True, False])
        self.both.rescue(worker, need_lock=need_lock)

    def time_passes(self) -> None:
        fact = self._one_of([fact for fact in FACTS if self.model.may_come_true(fact)])
        self.both.come_true(self._one_of(self.model.may_come_true(fact)), fact)

    def sweep(self) -> None:
        self.both.sweep()

    def _one_of(self, those: Sequence[T]) -> T:
        one = self.random.choice(those)
        note(f"  {one}")
        return one


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
            phases=[Phase.generate],
            max_examples=scaled(32, 1_000),
            stateful_step_count=scaled(40, 80),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )
