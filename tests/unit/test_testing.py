"""`outlast.testing.run`: a handler's own tests, without a server."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from app.domain.states import Reason, State
from outlast import Context, FailpointRaised, Permanent, SyncContext, Throttled, Transient, task, testing
from workers.handling.context import PolicyName

run = testing.run


class Ticket(BaseModel):
    id: str
    body: str


class Triage(BaseModel):
    category: str
    reply: str


async def classify(body: str) -> str:
    return "billing" if "pay" in body else "other"


def draft(body: str, category: str) -> str:
    return f"about {category}"


async def file_reply(ticket_id: str, reply: str, *, idempotency_key: str) -> str:
    return idempotency_key


@task("testing.triage", max_retries=2)
async def triage(ctx: Context, ticket: Ticket) -> Triage:
    category = await ctx.effect("classify", classify, ticket.body)
    reply = await ctx.effect("draft", draft, ticket.body, category)
    await ctx.effect("file", file_reply, ticket.id, reply)
    await ctx.progress(3, 3, "filed")
    return Triage(category=category, reply=reply)


TICKET = {"id": "7", "body": "I cannot pay"}


def test_a_handler_runs_with_real_validation_and_effects() -> None:
    ran = run(triage, TICKET)
    assert ran.state is State.DONE
    assert ran.result == Triage(category="billing", reply="about billing")
    assert ran.attempts == 1
    assert ran.calls == {"classify": 1, "draft": 1, "file": 1}
    assert ran.effects["classify"] == "billing"
    assert ran.progress == [{"done": 3, "total": 3, "message": "filed"}]
    assert run(triage, Ticket(id="7", body="I cannot pay")) == ran


@pytest.mark.parametrize("step", ["classify", "draft", "file"])
def test_a_crash_after_any_effect_repeats_none(step: str) -> None:
    ran = run(triage, TICKET, crash_after=step)
    assert (ran.state, ran.attempts, ran.retries) == (State.DONE, 2, 0)
    assert ran.calls == {"classify": 1, "draft": 1, "file": 1}


def test_a_crash_that_did_not_happen_proves_nothing_and_says_so() -> None:
    with pytest.raises(LookupError, match="clasify"):
        run(triage, TICKET, crash_after="clasify")


@task("testing.payment")
async def payment(ctx: Context, policy: PolicyName) -> str:
    async def charge() -> str:
        return "charged"

    async def found() -> str:
        return "found"

    reconcile = found if policy == "reconcile" else None
    return await ctx.effect("charge", charge, policy=policy, reconcile=reconcile)


@task("testing.payment.blocking")
def blocking_payment(ctx: SyncContext, policy: PolicyName) -> str:
    reconcile = (lambda: "found") if policy == "reconcile" else None
    return ctx.effect("charge", lambda: "charged", policy=policy, reconcile=reconcile)


ENDS_AFTER_A_CRASH = [
    ("effect.before_intent", "repeatable", "charged", 1),
    ("effect.before_intent", "at_most_once", "charged", 1),
    ("effect.before_intent", "reconcile", "charged", 1),
    ("effect.intended", "repeatable", "charged", 1),
    ("effect.intended", "at_most_once", None, 0),
    ("effect.intended", "reconcile", "found", 1),
    ("effect.called", "repeatable", "charged", 2),
    ("effect.called", "at_most_once", None, 1),
    ("effect.called", "reconcile", "found", 2),
    ("effect.recorded", "repeatable", "charged", 1),
    ("effect.recorded", "at_most_once", "charged", 1),
    ("effect.recorded", "reconcile", "charged", 1),
]


@pytest.mark.parametrize("handler", [payment, blocking_payment])
@pytest.mark.parametrize(("point", "policy", "result", "calls"), ENDS_AFTER_A_CRASH)
def test_a_crash_at_any_boundary_of_an_effect_ends_as_its_policy_says(
    handler: Callable[..., Any], point: str, policy: str, result: str | None, calls: int
) -> None:
    ran = run(handler, policy, crash_at=f"{point}@charge")
    assert (ran.result, ran.attempts, ran.retries) == (result, 2, 0)
    assert ran.reason is (None if result else Reason.EFFECT_UNKNOWN)
    assert ran.calls.get("charge", 0) == calls, "the call that reconciles is counted, too"


@pytest.mark.parametrize("handler", [payment, blocking_payment])
def test_an_error_between_a_call_and_its_record_leaves_the_outcome_unknown(handler: Callable[..., Any]) -> None:
    assert run(handler, "at_most_once", raise_at="effect.called@charge").reason is Reason.EFFECT_UNKNOWN
    bug = run(handler, "repeatable", raise_at="effect.called@charge")
    assert (bug.reason, bug.calls) == (Reason.PERMANENT_ERROR, {"charge": 1})


@pytest.mark.parametrize("handler", [payment, blocking_payment])
def test_an_error_before_a_call_leaves_nothing_unknown(handler: Callable[..., Any]) -> None:
    for point in ("effect.before_intent", "effect.intended"):
        ran = run(handler, "at_most_once", raise_at=f"{point}@charge")
        assert (ran.reason, ran.calls) == (Reason.PERMANENT_ERROR, {})


@task("testing.second_try")
async def second_try(ctx: Context, policy: PolicyName) -> str:
    """A handler that takes an unexpected error for a reason to ask again."""
    try:
        return await ctx.effect("charge", file_reply, "7", "hello", policy=policy)
    except FailpointRaised:
        return await ctx.effect("charge", file_reply, "7", "hello", policy=policy)


def test_an_error_of_an_effect_can_be_caught_and_the_effect_asked_for_again() -> None:
    again = run(second_try, "repeatable", raise_at="effect.called@charge")
    assert (again.state, again.calls) == (State.DONE, {"charge": 2})
    never = run(second_try, "at_most_once", raise_at="effect.called@charge")
    assert (never.reason, never.calls) == (Reason.EFFECT_UNKNOWN, {"charge": 1})


@pytest.mark.parametrize("nonsense", ["effect.called", "claim.committed@charge", "effect.charged@charge", ""])
def test_a_boundary_that_no_effect_has_is_refused(nonsense: str) -> None:
    with pytest.raises(ValueError, match="is no boundary of an effect"):
        run(payment, "repeatable", crash_at=nonsense)


def shout(_body: str, category: str) -> str:
    return category.upper()


def test_effects_have_stand_ins_of_three_kinds() -> None:
    ran = run(triage, TICKET, effects={"classify": "other", "draft": shout})
    assert ran.result == Triage(category="other", reply="OTHER")
    dead = run(triage, TICKET, effects={"draft": Permanent("no words")})
    assert (dead.state, dead.reason) == (State.DEAD, Reason.PERMANENT_ERROR)
    assert dead.error is not None
    assert dead.error.message == "no words"


def test_transient_failures_are_retried_without_waiting_and_then_dead() -> None:
    dead = run(triage, TICKET, effects={"draft": Transient("later", retry_after=1_000)})
    assert (dead.reason, dead.attempts, dead.retries) == (Reason.RETRIES_EXHAUSTED, 3, 2)
    assert all(delay >= 1_000 for delay in dead.delays_seconds)
    assert dead.calls == {"classify": 1, "draft": 3}


def test_a_quota_burns_no_retry() -> None:
    answers: list[Any] = [Throttled("quota")] * 5

    def sometimes(body: str, category: str) -> str:
        if answers:
            raise answers.pop()
        return "at last"

    ran = run(triage, TICKET, effects={"draft": sometimes})
    assert (ran.state, ran.attempts, ran.retries) == (State.DONE, 6, 0)


def test_an_input_the_model_refuses_never_starts_the_handler() -> None:
    ran = run(triage, {"id": 7})
    assert (ran.state, ran.reason, ran.calls) == (State.DEAD, Reason.INVALID_INPUT, {})


@task("testing.sync")
def blocking(ctx: SyncContext, n: int) -> int:
    return ctx.effect("double", lambda: n * 2)


async def test_it_runs_inside_a_running_loop_too() -> None:
    assert run(blocking, 4, crash_after="double").result == 8


@task("testing.booking")
async def booking(ctx: Context, n: int) -> int:
    async def book(connection: Any, n: int) -> int:
        raise AssertionError("there is no database here")

    return await ctx.transact("book", book, n)


def test_a_transaction_takes_a_stand_in_and_survives_a_crash() -> None:
    ran = run(booking, 1, effects={"book": 99}, crash_after="book")
    assert (ran.result, ran.attempts, ran.calls) == (99, 2, {"book": 1})


def test_it_is_imported_from_the_one_module_handler_authors_know() -> None:
    assert importlib.import_module("outlast.testing").run is run
