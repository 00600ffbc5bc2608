"""Who looks on while faults are fired sees a broken record, and says so when nothing could be seen."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.domain.states import State
from app.settings import Settings
from tests.chaos.observer import WHOLE_EVERY, Observer
from tests.integration.world import World


@pytest.fixture
async def session(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    session = await asyncpg.connect(settings.database_url.get_secret_value())
    yield session
    await session.close()


async def test_a_job_that_lost_its_home_is_seen(world: World, settings: Settings, session: asyncpg.Connection) -> None:
    observer = Observer(settings.database_url.get_secret_value())
    [job_id, _] = await world.submit(2)
    await observer.run_once(session)
    assert observer.findings == []
    assert {one.state for one in observer.sightings} == {State.QUEUED}
    await world.execute("DELETE FROM outbox WHERE job_id = $1", job_id)
    for _ in range(WHOLE_EVERY):
        await observer.run_once(session)
    assert {(one.rule, one.job_id) for one in observer.findings} == {("conservation", str(job_id))}


async def test_a_job_that_ended_long_ago_and_then_changes_is_seen(
    world: World, settings: Settings, session: asyncpg.Connection
) -> None:
    observer = Observer(settings.database_url.get_secret_value())
    await world.finish(await world.run())
    await world.execute("UPDATE outcomes SET finished_at = finished_at - interval '1 hour'")
    await observer.run_once(session)
    await world.execute("UPDATE outcomes SET crashes = 2")
    for _ in range(WHOLE_EVERY):
        await observer.run_once(session)
    assert [one.crashes for one in observer.sightings] == [0, 2]


async def test_an_observer_that_saw_nothing_is_a_finding(settings: Settings) -> None:
    assert [one.rule for one in Observer(settings.database_url.get_secret_value()).findings] == ["blind"]
