"""An effect in doubt is settled by an operator, and not while its call may still be in flight."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from app.domain.errors import JsonRefused, Refused
from app.store.fleet import Fleet
from app.usecases.replay import replay
from app.usecases.resolve import resolve_not_performed, resolve_performed
from tests.integration.world import World


async def performed(world: World, job_id: UUID, *, key: str = "pay", result: str = '{"receipt":7}') -> str:
    try:
        await resolve_performed(
            world.db, world.settings, job_id, key, result=result, reason="asked the bank", actor="ann"
        )
    except Refused as refused:
        return refused.code
    return "resolved"


async def not_performed(world: World, job_id: UUID, *, key: str = "pay", forced: bool = False) -> str:
    try:
        await resolve_not_performed(
            world.db, world.settings, job_id, key, forced=forced, reason="asked the bank", actor="ann"
        )
    except Refused as refused:
        return refused.code
    return "resolved"


async def test_a_performed_effect_gets_its_result_and_the_job_can_be_replayed(world: World) -> None:
    job_id = await world.die_in_doubt()
    assert await performed(world, job_id) == "resolved"
    effect = await world.row("effects", job_id)
    assert effect is not None
    assert (effect["state"], effect["result"]) == ("recorded", '{"receipt":7}')
    assert effect["recorded_at"] is not None
    assert await world.actions(job_id) == [("ann", "resolve", "asked the bank")]
    assert await performed(world, job_id) == "effect-resolved"
    [answer] = await replay(world.db, [job_id], replay_id="r1", reason="resolved", actor="ann")
    assert answer.outcome == "replayed"


async def test_null_is_a_result(world: World) -> None:
    job_id = await world.die_in_doubt()
    assert await performed(world, job_id, result="null") == "resolved"


async def test_not_performed_waits_until_the_writer_is_certainly_gone(world: World) -> None:
    job_id = await world.die_in_doubt()
    assert await not_performed(world, job_id) == "effect-in-flight"
    await world.execute("UPDATE workers SET heartbeat_at = now() - interval '1 h'")
    assert await not_performed(world, job_id) == "effect-in-flight", "silent, but its session holds the lock"
    await Fleet(world.db).leave(world.worker_id, "killed by signal 9")
    assert await not_performed(world, job_id) == "resolved"
    effect = await world.row("effects", job_id)
    assert effect is not None
    assert effect["state"] == "cleared"


async def test_a_silent_writer_whose_lock_is_free_is_gone(world: World) -> None:
    job_id = await world.die_in_doubt()
    await world.session.close()
    assert await not_performed(world, job_id) == "effect-in-flight", "its lock is free, but it was heard just now"
    await world.execute("UPDATE workers SET heartbeat_at = now() - interval '1 h'")
    assert await not_performed(world, job_id) == "resolved"


async def test_force_overrides_a_living_writer_and_is_audited(world: World) -> None:
    job_id = await world.die_in_doubt()
    assert await not_performed(world, job_id, forced=True) == "resolved"
    async with world.db.session() as connection:
        details = await connection.fetchval("SELECT details ->> 'forced' FROM operator_actions")
    assert details == "true"


async def test_only_an_intent_of_a_dead_job_can_be_resolved(world: World) -> None:
    [dead] = await world.die()
    [waiting] = await world.submit()
    for verdict in (performed, not_performed):
        assert await verdict(world, dead) == "effect-not-found"
        assert await verdict(world, waiting) == "job-not-dead"
        assert await verdict(world, uuid4()) == "job-not-found"


async def test_a_result_is_held_to_what_a_handler_may_record(world: World) -> None:
    job_id = await world.die_in_doubt()
    for text in ("NaN", "1e400", '"\\ud800"', "{"):
        with pytest.raises(JsonRefused):
            await performed(world, job_id, result=text)
    assert await performed(world, job_id, result=f'"{"x" * world.settings.max_effect_bytes}"') == "result-too-large"


async def test_two_verdicts_at_once_have_one_winner(world: World) -> None:
    for _ in range(20):
        job_id = await world.die_in_doubt()
        verdicts = await asyncio.gather(performed(world, job_id), not_performed(world, job_id, forced=True))
        assert sorted(verdicts) == ["effect-resolved", "resolved"]
