"""A replay runs a dead letter again, once per replay id, and never past an effect in doubt."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

from app.domain.states import Policy, Reason
from app.store.audit import run_checks
from app.usecases.cancel import cancel
from app.usecases.discard import discard
from app.usecases.replay import replay
from tests.integration.world import World


async def outcomes(world: World, replay_id: str, *ids: UUID) -> list[str]:
    answers = await replay(world.db, ids, replay_id=replay_id, reason="fixed", actor="ann")
    return [answer.outcome for answer in answers]


async def test_a_replay_begins_the_budgets_anew_and_keeps_the_attempt(world: World) -> None:
    [job_id] = await world.die()
    await world.execute("UPDATE dead_letters SET retries = 1 WHERE job_id = $1", job_id)
    assert await outcomes(world, "r1", job_id) == ["replayed"]
    row = await world.row("outbox", job_id)
    assert row is not None
    assert (row["attempt"], row["retries"], row["crashes"], row["releases"]) == (1, 0, 0, 0)
    assert (row["deferred"], row["max_retries"]) == (False, 2)
    assert await world.actions(job_id) == [("ann", "replay", "fixed")]
    [job] = await world.claim([job_id])
    assert job.attempt == 2
    assert await run_checks(world.db) == []


async def test_a_job_that_died_again_is_not_replayed_again_under_one_replay_id(world: World) -> None:
    [job_id] = await world.die()
    assert await outcomes(world, "r1", job_id) == ["replayed"]
    await world.bury(await world.claim([job_id]))
    assert await outcomes(world, "r1", job_id) == ["replayed_before"]
    assert await world.row("dead_letters", job_id) is not None
    assert await outcomes(world, "r2", job_id) == ["replayed"]


async def test_the_same_replay_id_twice_at_once_moves_each_job_once(world: World) -> None:
    ids = await world.die(50)
    answers = await asyncio.gather(*(outcomes(world, "r1", *ids) for _ in range(4)))
    for of_one_job in zip(*answers, strict=True):
        assert sorted(of_one_job) == ["replayed", *["replayed_before"] * 3]
    assert [len(await world.actions(job_id)) for job_id in ids] == [1] * 50
    assert await run_checks(world.db) == []


async def test_two_replay_ids_at_once_spend_one_id_not_both(world: World) -> None:
    """Lock first, then the gate: the loser's id is still good when the job dies again."""
    ids = await world.die(3)
    async with world.db.transaction() as connection:
        await connection.fetch("SELECT FROM dead_letters FOR UPDATE")
        racers = {r: asyncio.create_task(outcomes(world, r, *ids)) for r in ("r1", "r2")}
        await world.until_waiting_for_locks(2)
    answers = {r: await racer for r, racer in racers.items()}
    assert sorted(answers.values()) == [["job-not-dead"] * 3, ["replayed"] * 3]
    loser = min(answers, key=lambda r: answers[r])
    assert await world.bury(await world.claim(ids)) == set(ids)
    assert await outcomes(world, loser, *ids) == ["replayed"] * 3


async def test_a_job_with_an_effect_in_doubt_is_not_replayed_and_spends_no_id(world: World) -> None:
    doubtful = await world.die_in_doubt()
    repeatable = await world.die_in_doubt(Policy.REPEATABLE)
    assert await outcomes(world, "r1", doubtful, repeatable) == ["effect-unknown", "replayed"]
    await world.execute("UPDATE effects SET state = 'cleared' WHERE job_id = $1", doubtful)
    assert await outcomes(world, "r1", doubtful) == ["replayed"]


async def test_each_job_of_a_batch_has_its_own_answer_in_the_order_asked(world: World) -> None:
    [dead] = await world.die()
    [waiting] = await world.submit()
    [cancelled] = await world.submit()
    await cancel(world.db, cancelled, reason=None, actor="ann")
    unknown = uuid4()
    assert await outcomes(world, "r1", unknown, cancelled, dead, waiting) == [
        "job-not-found",
        "job-terminal",
        "replayed",
        "job-not-dead",
    ]


async def test_a_deadline_that_has_passed_is_not_carried_over(world: World) -> None:
    expired, open_still = await world.die(2, Reason.EXPIRED)
    await world.execute("UPDATE dead_letters SET deadline = now() - interval '1 s' WHERE job_id = $1", expired)
    await world.execute("UPDATE dead_letters SET deadline = now() + interval '1 h' WHERE job_id = $1", open_still)
    await outcomes(world, "r1", expired, open_still)
    rows = [await world.row("outbox", job_id) for job_id in (expired, open_still)]
    assert [row is not None and row["deadline"] is not None for row in rows] == [False, True]


async def test_a_discard_ends_the_job_as_cancelled_and_keeps_its_error_in_the_audit(world: World) -> None:
    [job_id] = await world.die()
    [answer] = await discard(world.db, [job_id], reason="obsolete", actor="ann")
    assert (answer.outcome, answer.refused) == ("discarded", None)
    outcome = await world.row("outcomes", job_id)
    assert outcome is not None
    assert (outcome["state"], outcome["reason"], outcome["attempt"]) == ("cancelled", "discarded", 1)
    assert await world.actions(job_id) == [("ann", "discard", "obsolete")]
    assert await outcomes(world, "r1", job_id) == ["job-terminal"]
    assert await run_checks(world.db) == []


async def test_replay_and_discard_at_once_have_one_winner(world: World) -> None:
    ids = await world.die(50)
    replayed, discarded = await asyncio.gather(
        outcomes(world, "r1", *ids), discard(world.db, ids, reason="obsolete", actor="bob")
    )
    pairs = list(zip(replayed, (answer.outcome for answer in discarded), strict=True))
    assert all(pair in {("replayed", "job-not-dead"), ("job-terminal", "discarded")} for pair in pairs)
    assert await run_checks(world.db) == []
