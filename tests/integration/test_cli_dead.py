"""`outlast dead`: which dead letters are meant, what would happen, and each replayed once."""

from __future__ import annotations

import asyncio
import signal
from uuid import UUID, uuid4

import pytest

from app.domain.states import Policy, Reason
from app.store.audit import run_checks
from tests.integration.shell import Shell
from tests.integration.world import KIND, World
from tests.processes import Stack, wait_until


async def outbox_ids(world: World) -> list[UUID]:
    async with world.db.session() as connection:
        return [row["job_id"] for row in await connection.fetch("SELECT job_id FROM outbox ORDER BY job_id")]


async def test_dead_letters_are_listed_grouped_and_shown(world: World, outlast: Shell) -> None:
    ids = await world.die(3)
    await world.die(1, Reason.TIMED_OUT)
    listed = (await outlast("dead", "list", "--reason-code", "permanent_error", "-o", "ids")).lines
    assert sorted(listed) == sorted(map(str, ids))
    first, second = (await outlast("dead", "groups", "-o", "json")).json()["data"]
    assert (first["jobs"], first["reason"], second["jobs"], second["reason"]) == (
        *(3, "permanent_error"),
        *(1, "timed_out"),
    )
    shown = (await outlast("dead", "show", ids[0], "-o", "json")).json()
    assert (shown["id"], shown["error"]["type"], shown["input"]) == (str(ids[0]), "ValueError", {})


async def test_a_second_replay_of_a_job_is_a_conflict(world: World, outlast: Shell) -> None:
    [job_id] = await world.die()
    first, second = [await outlast("dead", "replay", job_id, "--reason", "fixed", "--yes") for _ in range(2)]
    assert (first.code, second.code) == (0, 5)
    assert await outbox_ids(world) == [job_id]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        ((uuid4(), "--yes"), 2),
        ((uuid4(), "--reason", "r"), 2),
        ((uuid4(), "--reason", " ", "--yes"), 2),
        ((uuid4(), "--all", "--reason", "r", "--yes"), 2),
        (("--reason", "r", "--yes"), 2),
        (("--all", "--reason", "r", "--yes", "--rate", "0/s"), 2),
        (("--all", "--reason", "r", "--yes", "--replay-id", "a b"), 2),
        (("--all", "--reason", "r", "--yes", "--expect", 7), 5),
        ((uuid4(), "--reason", "r", "--yes"), 4),
    ],
)
async def test_a_replay_that_is_not_meant_changes_nothing(
    world: World, outlast: Shell, words: tuple[object, ...], code: int
) -> None:
    await world.die()
    assert (await outlast("dead", "replay", *words)).code == code
    assert await outbox_ids(world) == []


async def test_a_dry_run_shows_set_and_blast_radius_and_changes_nothing(world: World, outlast: Shell) -> None:
    ids = await world.die(2)
    ids += [await world.die_in_doubt(), await world.die_in_doubt(Policy.REPEATABLE)]
    ran = await outlast("dead", "replay", "--kind", KIND, "--dry-run", "-o", "json")
    assert ran.code == 0
    assert ran.json() == {
        "jobs": 4,
        "data": [
            _impact("effect_unknown", jobs=2, repeated=1, unknown=1, blocked=1),
            _impact("permanent_error", jobs=2),
        ],
    }
    listed = await outlast("dead", "replay", "--kind", KIND, "--dry-run", "-o", "ids")
    assert listed.lines == [str(job_id) for job_id in ids]
    assert await outbox_ids(world) == []


async def test_a_replay_by_filter_takes_only_what_matches_and_no_more_than_asked(world: World, outlast: Shell) -> None:
    ids = await world.die(5)
    await world.die(2, Reason.TIMED_OUT)
    words = ("dead", "replay", "--reason-code", "permanent_error", "--reason", "fixed", "--yes", "--replay-id", "r1")
    assert (await outlast(*words, "--limit", 2)).code == 0
    assert (await outlast(*words, "--limit", 2)).code == 0, "the same limit counts what the replay id has moved"
    assert await outbox_ids(world) == ids[:2]
    assert (await outlast(*words, "--expect", 5)).code == 0
    assert await outbox_ids(world) == ids


async def test_what_is_blocked_does_not_stop_the_others_and_is_said(world: World, outlast: Shell) -> None:
    ids = await world.die(2)
    doubtful = await world.die_in_doubt()
    ran = await outlast("dead", "replay", "--all", "--reason", "fixed", "--yes", "-o", "json")
    assert ran.code == 6
    assert {item["job_id"]: item["outcome"] for item in ran.json()["data"]} == {
        **{str(job_id): "replayed" for job_id in ids},
        str(doubtful): "effect-unknown",
    }


async def test_a_rate_spreads_a_replay_over_time(world: World, outlast: Shell) -> None:
    ids = await world.die(30)
    began = asyncio.get_running_loop().time()
    assert (await outlast("dead", "replay", "--all", "--rate", "30/s", "--reason", "r", "--yes")).code == 0
    assert asyncio.get_running_loop().time() - began > 0.7
    assert await outbox_ids(world) == ids


async def test_a_replay_that_is_killed_and_run_again_moves_each_job_once(world: World, stack: Stack) -> None:
    """Jobs that were replayed die again meanwhile; under the same replay id they stay dead."""
    ids = await world.die(60)
    words = ("dead", "replay", *map(str, ids), "--reason", "fixed", "--yes", "--replay-id", "r1", "-o", "ids")
    process = stack.start(*words, "--rate", "50/s", name="replay")
    await asyncio.to_thread(wait_until, lambda: process.stdout.count("\n") >= 10)
    process.send(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    moved = await outbox_ids(world)
    assert 10 <= len(moved) < 60
    await world.bury(await world.claim(moved))
    again = await asyncio.to_thread(stack.run, *words)
    assert again.returncode == 0
    assert await outbox_ids(world) == [job_id for job_id in ids if job_id not in set(moved)]
    assert await run_checks(world.db) == []


async def test_a_discard_is_final(world: World, outlast: Shell) -> None:
    ids = await world.die(2)
    ran = await outlast("dead", "discard", "-", "--reason", "obsolete", "--yes", "-o", "ids", stdin=str(ids[0]))
    assert (ran.code, ran.lines) == (0, [str(ids[0])])
    assert (await outlast("dead", "discard", ids[0], "--reason", "again", "--yes")).code == 5
    assert (await outlast("dead", "replay", ids[0], "--reason", "no", "--yes")).code == 5
    assert (await outlast("dead", "discard", "--all", "--reason", "r")).code == 2
    shown = (await outlast("job", "show", ids[0], "-o", "json")).json()
    assert (shown["state"], shown["reason"]) == ("cancelled", "discarded")


def _impact(reason: str, **figures: int) -> dict[str, object]:
    nothing = {"jobs": 0, "reused": 0, "repeated": 0, "unknown": 0, "blocked": 0}
    return {"kind": KIND, "reason": reason, **nothing, **figures}
