"""Jobs come in for free slots only, and every one that came in goes out again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import pytest

from app.settings import Settings
from app.store.database import Database
from app.store.effects import Effects
from app.store.fleet import Incarnation
from app.store.leases import Leases
from tests.integration.world import KIND, World
from workers.executor import Executor
from workers.finisher import Finisher
from workers.handling.context import Context
from workers.heart import Heart
from workers.intake import Intake
from workers.registry import Registry, task, task_of
from workers.runs import Run, Runs

SLOTS = 3


@task(KIND)
async def echo(ctx: Context, value: dict[str, int]) -> dict[str, int]:
    return value


@dataclass
class Desk:
    intake: Intake
    runs: Runs
    finisher: Finisher


@pytest.fixture
async def desk(db: Database, settings: Settings) -> AsyncIterator[Desk]:
    registry = Registry([task_of(echo)])
    me = Incarnation(uuid4(), "worker", ["default"], registry.names(), SLOTS, "pg")
    leases = Leases(db, settings, me.id, registry.names())
    executor = Executor(settings, Effects(db, settings), random=random.random)
    runs = Runs(SLOTS, lambda: executor.stragglers)
    finisher = Finisher(leases, runs, None)
    heart = Heart(settings, me, lambda _: None)
    heart.start()
    await heart.next_answer()
    yield Desk(Intake(leases, registry, executor, runs, finisher, heart), runs, finisher)
    await heart.stop()


async def until_ended(run: Run) -> None:
    async with asyncio.timeout(10):
        while not run.ending:
            await asyncio.sleep(0.001)


async def test_no_more_is_claimed_than_slots_are_free(desk: Desk, world: World) -> None:
    await world.submit(5)

    assert await desk.intake.claim_due("default", [KIND]) == SLOTS
    assert await desk.intake.claim_due("default", [KIND]) == 0
    assert len(desk.runs) == SLOTS


async def test_a_run_that_is_given_back_before_its_first_step_is_given_back(desk: Desk, world: World) -> None:
    [job_id] = await world.submit()
    await desk.intake.claim_due("default", [KIND])
    [run] = desk.runs
    run.releasing = True
    run.cancel()
    await until_ended(run)

    await desk.finisher.run_once()

    assert len(desk.runs) == 0
    row = await world.row("outbox", job_id)
    assert row is not None
    assert (row["attempt"], row["crashes"], row["releases"]) == (1, 0, 1)


async def test_a_run_that_is_lost_before_its_first_step_keeps_no_slot(desk: Desk, world: World) -> None:
    await world.submit()
    await desk.intake.claim_due("default", [KIND])
    [run] = desk.runs
    run.lose()
    await until_ended(run)

    await desk.finisher.run_once()

    assert desk.runs.free() == SLOTS
    assert desk.finisher.fenced == 1
