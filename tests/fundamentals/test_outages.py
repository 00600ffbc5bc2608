"""What a server or a process takes down with it: nothing that was answered."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
from pydantic import SecretStr

from app.domain.findings import Finding
from app.settings import Settings
from app.store import roster
from app.store.audit import run_checks
from app.store.database import Database
from app.store.migrate import migrate
from tests.client import Client, journal_of
from tests.fundamentals.conftest import HANDLERS
from tests.processes import Process, Stack, wait_until
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

T = TypeVar("T")


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Redis]:
    """A broker that this test may kill."""
    with Redis(tmp_path, durable=False) as server:
        yield server


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[Postgres]:
    """A durable PostgreSQL that this test may kill."""
    with Postgres(tmp_path) as server:
        yield server


def _serve(stack: Stack, *, relays: int = 1) -> tuple[Client, list[Process]]:
    """API, relays and a worker whose kinds are known; and a caller."""
    processes = [stack.api(), *(stack.relay() for _ in range(relays)), stack.worker(HANDLERS)]
    client = Client(stack.api_url)
    wait_until(lambda: client.http.get("/v1/kinds").json()["data"], 40, what="the kinds to be published")
    return client, processes


def _on_database(settings: Settings, ask: Callable[[Database], Awaitable[T]]) -> T:
    async def run() -> T:
        db = await Database.open(settings, "test")
        try:
            return await ask(db)
        finally:
            await db.close()

    return asyncio.run(run())


def _findings(settings: Settings) -> list[Finding]:
    return _on_database(settings, run_checks)


def _leader(settings: Settings, *, other_than: int = 0) -> int:
    """The pid of the relay that leads; 0 while none does."""
    listed = _on_database(settings, lambda db: roster.workers(db, left_too=False))
    leading = [one.pid for one in listed if one.leader and one.silent_seconds < settings.suspect_seconds]
    return next((pid for pid in leading if pid != other_than), 0)


def _revive(server: Redis | Postgres) -> None:
    server.spawn()
    wait_until(server.is_ready, what=f"{server.name} to be back")


def _kill(server: Redis | Postgres) -> None:
    server.process.send_signal(signal.SIGKILL if isinstance(server, Redis) else signal.SIGQUIT)
    server.process.wait(20)


def _all_done(client: Client, ids: list[str]) -> None:
    for job_id in ids:
        job = client.wait_for(job_id, "done", seconds=60)
        assert (job["crashes"], job["retries"]["used"]) == (0, 0), "an outage charges nothing"


def test_a_broker_that_dies_and_comes_back_empty_loses_nothing(
    stack: Stack, settings: Settings, own_redis: Redis, tmp_path: Path
) -> None:
    stack.settings = settings.model_copy(update={"redis_url": SecretStr(own_redis.url), "worker_concurrency": 2})
    client, _ = _serve(stack)
    plan = {"journal": str(tmp_path / "journal"), "steps": ["one"]}
    first = client.submit("test.steps", {**plan, "journal": str(tmp_path / "held"), "hold": ["one"]})
    wait_until(lambda: journal_of(tmp_path / "held").count("hold"), what="a job under way")

    waiting = client.submit_all("test.steps", [plan] * 100)
    _kill(own_redis)
    meanwhile = client.submit_all("test.steps", [plan] * 50)
    _all_done(client, meanwhile)
    ready = client.http.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")

    _revive(own_redis)
    afterwards = client.submit_all("test.steps", [plan] * 50)
    (tmp_path / "held.one").touch()
    _all_done(client, [first, *waiting, *meanwhile, *afterwards])
    wait_until(lambda: client.http.get("/readyz").json()["status"] == "ok", what="the broker to be seen again")
    assert journal_of(tmp_path / "journal").count("perform") == 200
    assert _findings(stack.settings) == []


def test_a_database_that_crashes_loses_no_job_that_was_answered_and_charges_nothing(
    stack: Stack, settings: Settings, own_postgres: Postgres, tmp_path: Path
) -> None:
    stack.settings = settings.model_copy(update={"database_url": SecretStr(own_postgres.url)})
    migrate(stack.settings)
    client, processes = _serve(stack)
    journal = tmp_path / "journal"
    plan = {"journal": str(journal), "steps": ["one", "two"], "hold": ["two"]}
    held = client.submit("test.steps", plan)
    wait_until(lambda: journal_of(journal).count("hold"), what="a job under way")
    waiting = [client.submit("test.steps", {**plan, "hold": []}, delay_seconds=86_400, key="later")]
    waiting += client.submit_all("test.steps", [{**plan, "hold": []}] * 20, delay_seconds=0.5)

    _kill(own_postgres)
    refused = client.http.post("/v1/jobs", json={"kind": "test.steps", "input": plan}, timeout=30)
    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
    _revive(own_postgres)
    (tmp_path / "journal.two").touch()

    _all_done(client, [held, *waiting[1:]])
    assert client.job(waiting[0])["state"] == "scheduled"
    assert client.submit("test.steps", {**plan, "hold": []}, delay_seconds=86_400, key="later") == waiting[0]
    assert all(process.alive() for process in processes), "no process needs a restart"
    performed = journal_of(journal).lines("perform")
    assert len(performed) == len({(job, step) for job, step, _ in performed}), "no effect was performed twice"
    assert _findings(stack.settings) == []


def test_when_the_leading_relay_is_killed_another_leads_and_nothing_waits_for_it(stack: Stack, tmp_path: Path) -> None:
    client, (_, *relays, _) = _serve(stack, relays=2)
    plan = {"journal": str(tmp_path / "journal"), "steps": ["one"]}

    _all_done(client, client.submit_all("test.steps", [plan] * 20))
    first = wait_until(lambda: _leader(stack.settings), what="a relay to lead")
    next(relay for relay in relays if relay.pid == first).kill()
    ids = client.submit_all("test.steps", [plan] * 20)
    second = wait_until(lambda: _leader(stack.settings, other_than=first), 40, what="the other relay to lead")
    assert {first, second} == {relay.pid for relay in relays}
    _all_done(client, ids)
    assert journal_of(tmp_path / "journal").count("start") == 40
    assert _findings(stack.settings) == []


def test_callers_whose_api_is_killed_send_their_keys_again_and_get_one_job_each(stack: Stack, tmp_path: Path) -> None:
    client, (api, *_) = _serve(stack)
    plan = {"journal": str(tmp_path / "journal"), "steps": ["one"]}
    keys = [f"key-{number}" for number in range(200)]
    answered: dict[str, str] = {}

    def submit(key: str) -> None:
        try:
            job_id = client.submit("test.steps", plan, key=key)
        except httpx.TransportError:
            return
        assert answered.setdefault(key, job_id) == job_id, "a key is one job for ever"

    with ThreadPoolExecutor(16) as callers:
        calls = [callers.submit(submit, key) for key in keys]
        wait_until(lambda: len(answered) > 20, what="some answers")
        api.kill()
    assert [call.exception() for call in calls] == [None] * len(keys)
    assert len(answered) < len(keys), "the kill came in time"
    stack.api()
    client = Client(stack.api_url)
    with ThreadPoolExecutor(16) as callers:
        list(callers.map(submit, keys))

    assert len(set(answered.values())) == len(keys)
    _all_done(client, list(answered.values()))
    assert journal_of(tmp_path / "journal").count("start") == len(keys)
    assert _findings(stack.settings) == []
