"""Why a job is where it is: read from real rows of jobs, workers and leases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from httpx import AsyncClient

from app.domain.outcomes import Retry
from app.domain.states import Reason
from app.settings import Settings
from app.store import fleet
from app.store.database import connect
from app.store.leases import Ended
from tests.integration.reading import client_of, get
from tests.integration.test_reading_jobs import FAILURE
from tests.integration.world import World


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with client_of(settings) as client:
        yield client


async def why(client: AsyncClient, job_id: UUID) -> tuple[str, str]:
    found = await get(client, f"/v1/jobs/{job_id}/explanation")
    assert found["summary"]
    return found["reason"], found["who_acts"]


async def test_a_job_without_a_live_worker_waits_for_an_operator(world: World, client: AsyncClient) -> None:
    [job_id] = await world.submit()
    await world.execute("UPDATE workers SET left_at = now()")
    assert await why(client, job_id) == ("no_worker", "operator")


async def test_a_kind_no_live_worker_knows_is_named(world: World, client: AsyncClient) -> None:
    [job_id] = await world.submit(kind="other.kind")
    await world.beat()
    assert await why(client, job_id) == ("kind_unknown", "operator")


async def test_a_job_behind_busy_slots_is_told_how_many_go_first(world: World, client: AsyncClient) -> None:
    await world.run(10)
    *_, last = await world.submit(4)
    await world.beat()
    found = await get(client, f"/v1/jobs/{last}/explanation")
    assert (found["reason"], found["next_event"]) == ("waiting_for_slot", "a slot becomes free")
    assert "3" in found["summary"]


async def test_a_broker_that_is_away_is_said(world: World, client: AsyncClient) -> None:
    [job_id] = await world.submit()
    await fleet.beat(world.session, world.worker_id, broker_ok=False)
    assert (await why(client, job_id))[0] == "broker_away"


async def test_without_a_relay_workers_sweep(world: World, client: AsyncClient) -> None:
    [job_id] = await world.submit()
    await world.beat()
    assert (await why(client, job_id))[0] == "no_relay"


async def test_with_a_leading_relay_the_job_is_in_delivery(
    world: World, client: AsyncClient, settings: Settings
) -> None:
    [job_id] = await world.submit()
    relay = fleet.Incarnation(UUID(int=7), "relay", [], [], 0, "redis")
    session = await connect(settings, "test relay")
    await fleet.register(session, relay)
    await fleet.beat(session, relay.id, broker_ok=True, leader=True)
    await world.beat()
    assert await why(client, job_id) == ("in_delivery", "outlast")
    session.terminate()


async def test_a_running_job_names_its_process_and_its_last_moment(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    found = await get(client, f"/v1/jobs/{job.id}/explanation")
    assert (found["reason"], found["who_acts"]) == ("running", "handler")
    assert found["next_at"] is not None


async def test_a_silent_worker_and_a_gone_one_are_told_apart(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    await world.execute("UPDATE workers SET heartbeat_at = now() - interval '1.5 s'")
    assert await why(client, job.id) == ("worker_silent", "outlast")
    await world.execute("UPDATE workers SET left_at = now(), left_cause = 'killed by signal 9'")
    found = await get(client, f"/v1/jobs/{job.id}/explanation")
    assert found["reason"] == "worker_gone"
    assert "killed by signal 9" in found["summary"]


async def test_a_failed_attempt_backs_off_until_a_known_time(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    await world.leases.retry_if_leased([Ended(job.id, 1, Retry(FAILURE, 3_600))])
    found = await get(client, f"/v1/jobs/{job.id}/explanation")
    assert (found["reason"], found["who_acts"]) == ("backing_off", "time")
    assert found["next_at"] == (await get(client, f"/v1/jobs/{job.id}"))["due_at"]


async def test_a_dead_job_says_what_to_do_and_which_effects_are_unknown(world: World, client: AsyncClient) -> None:
    [dead] = await world.die(reason=Reason.RETRIES_EXHAUSTED)
    assert await why(client, dead) == ("retries_exhausted", "operator")
    doubtful = await world.die_in_doubt(key="pay")
    found = await get(client, f"/v1/jobs/{doubtful}/explanation")
    assert found["reason"] == "effect_unknown"
    assert "pay" in found["summary"]
    assert "effect resolve" in found["next_event"]


async def test_a_done_job_needs_nobody(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    await world.finish([job])
    assert await why(client, job.id) == ("done", "nobody")
