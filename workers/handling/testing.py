"""Runs a handler in memory: real validation, effects, policies and failure classes, no server.

from outlast.testing import run

def test_a_crash_after_classify_repeats_nothing():
    ran = run(triage, {"id": "7", "body": "it burns"}, crash_after="classify")
    assert ran.state == "done"
    assert ran.calls == {"classify": 1, "draft": 1, "file": 1}
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic_core import to_jsonable_python

from app import failpoints
from app.domain import jsontext
from app.domain.errors import FailpointRaised
from app.domain.leased import LeasedJob
from app.domain.outcomes import Bury, Done, Failure, Gone, Outcome, Release, Retry
from app.domain.states import EffectState, Reason, State
from app.failpoints import Action, Point
from app.settings import Settings
from workers.executor import Executor
from workers.handling.calling import Caller, Function
from workers.handling.memory_ledger import MemoryLedger
from workers.handling.threads import Threads
from workers.registry import Task, task_of

JOB_ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
JITTER = 0.5
BOUNDARIES = tuple(point for point in Point if point.startswith("effect."))


@dataclass(frozen=True, slots=True)
class Ran:
    """How a job ended and what it did on the way.

    `result` is of the handler's output type (None unless done), `reason` and `error` say why it is dead.
    `calls` counts the calls of each effect's function, `effects` are the recorded results as JSON values,
    `delays_seconds` the back-offs between attempts, which are not waited for.
    """

    state: State
    result: Any
    reason: Reason | None
    error: Failure | None
    attempts: int
    retries: int
    delays_seconds: list[float]
    calls: dict[str, int]
    effects: dict[str, Any]
    progress: list[dict[str, Any]]


def run(
    handler: Callable[..., Any],
    input: Any,  # noqa: A002  # what the API calls it
    *,
    effects: Mapping[str, Any] | None = None,
    crash_after: str | None = None,
    crash_at: str | None = None,
    raise_at: str | None = None,
) -> Ran:
    """Runs the job to its end, retries included, and says how it ended.

    `handler` is declared with `@task`; `input` is its input model or JSON for it. `effects` stands in for
    the functions of effects by key: a value is returned, an exception raised, a function called with
    their arguments. A `transact` has no database here, its function gets None: give it a stand-in.
    `crash_after` names an effect: the worker dies once that is on record, and another takes the job.
    `crash_at` names any boundary of an effect, such as `effect.called@charge` (docs/failpoints.md), at which the worker
    dies; `raise_at` one that raises `FailpointRaised` to the handler. Each happens once.

    Raises `LookupError` when the boundary was not reached, so that what was asked for did not happen.
    """
    task = task_of(handler)
    orders = [
        *([] if crash_after is None else [_Order(Action.KILL, f"{Point.EFFECT_RECORDED}@{crash_after}")]),
        *([] if crash_at is None else [_Order(Action.KILL, crash_at)]),
        *([] if raise_at is None else [_Order(Action.RAISE, raise_at)]),
    ]
    story = _Story(task, _json_of(input), dict(effects or {}), orders)
    return _run_anywhere(story.told)


class _StandIns(Caller):
    """Calls what stands in for a function of an effect, and counts."""

    def __init__(self, threads: Threads, stand_ins: Mapping[str, Any], calls: dict[str, int]) -> None:
        super().__init__(threads)
        self._stand_ins = stand_ins
        self._calls = calls

    async def call(self, key: str, function: Function, args: tuple[Any, ...], derived_key: Callable[[], str]) -> Any:
        self._calls[key] = self._calls.get(key, 0) + 1
        if key not in self._stand_ins:
            return await super().call(key, function, args, derived_key)
        stand_in = self._stand_ins[key]
        if isinstance(stand_in, BaseException):
            raise stand_in
        if callable(stand_in):
            return await super().call(key, stand_in, args, derived_key)
        return stand_in


@dataclass(slots=True, eq=False)
class _Lease:
    """Implements `workers.handling.run_lease.RunLease`."""

    job: LeasedJob
    seen: list[dict[str, Any]]
    lost: bool = False
    releasing: bool = False

    async def may_call(self) -> None:
        return

    def may_call_now(self) -> bool:
        return True

    async def progress(self, json_text: str) -> None:
        shown = jsontext.parse(json_text)
        assert isinstance(shown, dict)
        self.seen.append(dict(shown))


class _Order:
    """A crash or an error at one boundary of one effect: `boundary` is a point and, after an @, the effect's key."""

    def __init__(self, action: Action, boundary: str) -> None:
        point, _, self.key = boundary.partition("@")
        if point not in BOUNDARIES or not self.key:
            raise ValueError(f"{boundary!r} is no boundary of an effect; those are {', '.join(BOUNDARIES)}, each @key")
        self.action = action
        self.point = Point(point)
        self.boundary = boundary
        self.obeyed = False


class _Story:
    """The attempts of one job, one after the other."""

    def __init__(self, task: Task, input_text: str, stand_ins: dict[str, Any], orders: Sequence[_Order]) -> None:
        self._task = task
        self._calls: dict[str, int] = {}
        self._progress: list[dict[str, Any]] = []
        self._delays: list[float] = []
        self._ledger = MemoryLedger()
        self._orders = orders
        self._crash: Callable[[], None] = lambda: None
        self._stand_ins = stand_ins
        self._job = LeasedJob(
            id=JOB_ID,
            attempt=0,
            tenant="default",
            kind=task.name,
            queue=task.defaults.queue or "default",
            input=input_text,
            run_seconds=task.defaults.timeout_seconds,
            deadline_binds=False,
            retries=0,
            max_retries=task.defaults.max_retries,
            crashes=0,
            releases=0,
        )

    async def told(self) -> Ran:
        with failpoints.watched(self._reached):
            return await self._told()

    def _reached(self, point: Point, key: str) -> None:
        for order in self._orders:
            if (order.point, order.key) == (point, key) and not order.obeyed:
                order.obeyed = True
                if order.action is Action.RAISE:
                    raise FailpointRaised(f"asked for at {order.boundary}")
                self._crash()
                raise asyncio.CancelledError  # a dead worker goes on with nothing

    async def _told(self) -> Ran:
        executor = Executor(
            Settings.model_construct(),
            self._ledger,
            random=lambda: JITTER,
            caller=lambda threads: _StandIns(threads, self._stand_ins, self._calls),
        )
        while True:
            outcome = await self._attempt(executor)
            match outcome:
                case Done(result):
                    return self._ended(State.DONE, result=self._task.output.validate_json(result))
                case Bury(reason, failure):
                    return self._ended(State.DEAD, reason=reason, error=failure)
                case Retry(_, delay, _, charged):
                    self._delays.append(delay)
                    self._job = self._job._replace(
                        retries=self._job.retries + charged,
                        releases=self._job.releases + (not charged),
                    )
                case Gone() | Release():
                    self._job = self._job._replace(crashes=self._job.crashes + 1)

    async def _attempt(self, executor: Executor) -> Outcome:
        self._job = self._job._replace(attempt=self._job.attempt + 1)
        self._ledger.held = self._job.attempt
        lease = _Lease(self._job, self._progress)
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        attempt = executor.begin(self._task, lease, ended.set_result)

        def crash() -> None:
            self._ledger.held = None
            lease.lost = True
            attempt.interrupt()

        self._crash = crash
        return await ended

    def _ended(
        self, state: State, *, result: Any = None, reason: Reason | None = None, error: Failure | None = None
    ) -> Ran:
        for order in self._orders:
            if not order.obeyed:
                raise LookupError(f"{order.boundary!r} was not reached, so nothing happened there; the job is {state}")
        rows = self._ledger.rows.values()
        return Ran(
            state=state,
            result=result,
            reason=reason,
            error=error,
            attempts=self._job.attempt,
            retries=self._job.retries,
            delays_seconds=self._delays,
            calls=self._calls,
            effects={row.key: jsontext.read(row.result or "null") for row in rows if row.state is EffectState.RECORDED},
            progress=self._progress,
        )


def _json_of(value: Any) -> str:
    return jsontext.dump(to_jsonable_python(value, by_alias=True))


def _run_anywhere(story: Callable[[], Coroutine[Any, Any, Ran]]) -> Ran:
    """Runs a coroutine on a loop of its own; where a loop runs already, in a thread beside it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(story())
    box: list[Ran | BaseException] = []

    def beside() -> None:
        try:
            box.append(asyncio.run(story()))
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]
