"""An error that nobody thought of, at each place that has to go on after one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from uuid import UUID, uuid4

import pytest

from app import failpoints
from app.domain.outcomes import Done
from app.failpoints import Action, Point, fired, order
from app.settings import Settings
from app.store import fleet
from app.store.audit import conservation
from app.store.fleet import Incarnation
from tests.integration.world import World, opened
from workers.finisher import Finisher
from workers.guarding.ending import end
from workers.heart import Answer, Heart
from workers.rescuer import Rescuer
from workers.runs import Run, Runs

ENOUGH_SECONDS = 20


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Orders that this process obeys."""
    failpoints.arm(Settings(failpoints=str(tmp_path)))
    yield tmp_path
    failpoints.disarm()


async def show_nothing(_job: UUID, _attempt: int, _text: str) -> None:
    return None


async def bereaved(world: World) -> UUID:
    """A job whose worker is said to be dead."""
    [job] = await world.run()
    await fleet.Fleet(world.db).leave(world.worker_id, "killed by signal 9")
    return job.id


async def back(world: World, job_id: UUID) -> None:
    async with asyncio.timeout(ENOUGH_SECONDS):
        while await world.row("outbox", job_id) is None:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("point", [Point.RESCUE_SEEN, Point.RESCUE_MOVED])
async def test_a_look_for_the_dead_that_fails_ends_none_of_those_to_come(
    world: World, settings: Settings, folder: Path, point: Point
) -> None:
    order(folder, Action.RAISE, point)
    first = await bereaved(world)
    rescuer = Rescuer(settings, uuid4())
    watching = asyncio.create_task(rescuer.run(lambda _: None))
    try:
        await back(world, first)
        assert len(fired(folder, point)) == 1
        async with opened(world.db, settings) as another:
            await back(another, await bereaved(another))
    finally:
        await end([watching])
        await rescuer.close()


@pytest.mark.parametrize("point", [Point.HEARTBEAT_BEFORE, Point.HEARTBEAT_AFTER])
async def test_a_heart_goes_on_after_a_beat_that_failed(settings: Settings, folder: Path, point: Point) -> None:
    answers: list[Answer] = []
    heart = Heart(settings, Incarnation(uuid4(), "worker", ["default"], [], 1, "pg"), answers.append)
    order(folder, Action.RAISE, point, "worker")
    heart.start()
    try:
        for _ in range(2):
            await asyncio.wait_for(heart.next_answer(), ENOUGH_SECONDS)
        assert len(fired(folder, point, "worker")) == 1
    finally:
        await heart.stop()


async def test_an_ending_whose_writer_fails_after_the_commit_costs_neither_it_nor_its_neighbours(
    world: World, folder: Path
) -> None:
    runs = Runs(10, lambda: 0)
    finisher = Finisher(world.leases, runs, None)
    writing = asyncio.create_task(finisher.run())
    order(folder, Action.RAISE, Point.FINISH_COMMITTED)
    try:
        for job in await world.run(2):
            run = Run(job, None, cast("Heart", None), show_nothing)
            runs.add(run)
            finisher.put(run, Done("1"))
            await asyncio.wait_for(runs.until_idle(), ENOUGH_SECONDS)
            assert await world.row("outcomes", job.id) is not None
        assert len(fired(folder, Point.FINISH_COMMITTED)) == 1
        assert not writing.done()
    finally:
        await end([writing])
    assert await conservation(world.db) == []


async def test_an_ending_that_cannot_be_written_for_a_fault_of_ours_leaves_a_lease_that_nothing_explains(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the heartbeat's answer has it given back, uncharged, and the neighbours' endings are written."""

    async def fail(*_: object) -> set[UUID]:
        raise RuntimeError("a bug of ours")

    [broken, well] = await world.run(2)
    runs, leases = Runs(10, lambda: 0), world.leases
    finisher = Finisher(leases, runs, None)
    for job, write in ((broken, fail), (well, leases.finish_if_leased)):
        monkeypatch.setattr(leases, "finish_if_leased", write)
        run = Run(job, None, cast("Heart", None), show_nothing)
        runs.add(run)
        finisher.put(run, Done("1"))
        await finisher.run_once()

    assert len(runs) == 0
    assert await world.row("outcomes", well.id) is not None
    seen = Answer(await fleet.beat(world.session, world.worker_id, broker_ok=True), sent_at=0)
    assert [runs.judge(seen), runs.judge(seen)] == [[], [(broken.id, broken.attempt)]]
