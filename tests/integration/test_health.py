"""Liveness, readiness and metrics, with and without what they depend on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from httpx import AsyncClient
from pydantic import SecretStr

from app.settings import Settings
from app.store import fleet
from app.store.database import Connection, connect
from tests.integration.reading import client_of, get
from tests.integration.world import World

RELAY = fleet.Incarnation(UUID(int=7), "relay", [], [], 0, "redis")
NOBODY_LISTENS = "postgresql://someone:secret-word@127.0.0.1:1/outlast"


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with client_of(settings) as client:
        yield client


@pytest.fixture
async def relay(settings: Settings, world: World) -> AsyncIterator[Connection]:
    session = await connect(settings, "test relay")
    await fleet.register(session, RELAY)
    yield session
    session.terminate()


async def test_ready_is_ok_when_everything_is_there(world: World, relay: Connection, client: AsyncClient) -> None:
    await fleet.beat(relay, RELAY.id, broker_ok=True, leader=True)
    await world.beat()
    assert await get(client, "/readyz") == {
        "status": "ok",
        "dependencies": {"postgresql": "ok", "broker": "ok"},
        "loops": {"relay": "ok", "workers": "ok"},
    }


async def test_ready_is_degraded_without_broker_relay_or_workers(
    world: World, relay: Connection, client: AsyncClient
) -> None:
    await world.beat()
    await fleet.beat(relay, RELAY.id, broker_ok=False, leader=True)
    found = await get(client, "/readyz")
    assert (found["status"], found["dependencies"]["broker"]) == ("degraded", "away")
    await fleet.beat(relay, RELAY.id, broker_ok=True, leader=False)
    found = await get(client, "/readyz")
    assert (found["status"], found["loops"]["relay"]) == ("degraded", "no_leader")
    await world.execute("UPDATE workers SET left_at = now()")
    found = await get(client, "/readyz")
    assert (found["status"], found["loops"]) == ("degraded", {"relay": "away", "workers": "away"})


async def test_without_postgresql_ready_is_503_and_names_no_host(settings: Settings) -> None:
    away = settings.model_copy(update={"database_url": SecretStr(NOBODY_LISTENS)})
    async with client_of(away) as client:
        assert (await client.get("/healthz")).status_code == 200
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (503, "down")
        assert answer.json()["dependencies"]["postgresql"] == "away"
        assert "127.0.0.1" not in answer.text
        assert "secret-word" not in answer.text
        metrics = await client.get("/metrics")
        assert metrics.status_code == 200
        assert "outlast_database_up 0.0" in metrics.text
        job = await client.get(f"/v1/jobs/{UUID(int=1)}")
        assert job.status_code == 503
        assert int(job.headers["retry-after"]) >= 1


async def test_a_database_without_tables_is_not_ready(settings: Settings, postgres_url: str) -> None:
    async with client_of(settings.model_copy(update={"database_url": SecretStr(postgres_url)})) as client:
        assert (await get(client, "/readyz", 503))["status"] == "down"


async def test_metrics_count_what_waits_runs_and_lies_dead(world: World, client: AsyncClient) -> None:
    await world.die(2)
    await world.run(3)
    ids = await world.submit(5)
    await world.execute("UPDATE outbox SET deferred = true, due_at = now() + interval '1 h' WHERE job_id = $1", ids[0])
    await world.execute("UPDATE outbox SET queue = 'slow' WHERE job_id = $1", ids[1])
    await world.beat()
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = set(answer.text.splitlines())
    assert {
        "outlast_database_up 1.0",
        'outlast_jobs_waiting{queue="default"} 3.0',
        'outlast_jobs_waiting{queue="(others)"} 1.0',
        'outlast_jobs_running{queue="default"} 3.0',
        'outlast_dead_letters{reason="permanent_error"} 2.0',
        "outlast_jobs_deferred 1.0",
        "outlast_workers 1.0",
        "outlast_worker_slots 10.0",
        "outlast_broker_up 1.0",
    } <= lines
