"""The system under faults: servers, processes behind proxies, and a sink that counts."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpx
from pydantic import SecretStr

from app.settings import Settings
from app.store.database import AWAY
from app.store.migrate import migrate
from tests.chaos.clocks import ShiftedClock
from tests.chaos.plan import Shape
from tests.chaos.proxy import Proxy
from tests.chaos.taps import PlainTap, PostgresTap
from tests.databases import in_database
from tests.processes import Process, Stack, children, is_running
from workers.dev.embedded import free_port
from workers.dev.guard import spawn
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

HANDLERS = ["tests.chaos.handlers"]
RELAYS = 2
TEMPLATE = "chaos"
HANDLER_LOG = "handlers.log"
READY_SECONDS = 120.0
POLL_SECONDS = 0.05
EXIT_SECONDS = 20.0

CLOCKS: dict[str, float] = {
    "lease_seconds": 5,
    "suspect_seconds": 2,
    "heartbeat_seconds": 0.2,
    "sweep_seconds": 0.1,
    "backoff_base_seconds": 0.1,
    "backoff_cap_seconds": 1,
    "republish_seconds": 1,
    "block_seconds": 0.3,
    "shutdown_seconds": 5,
    "worker_concurrency": 20,
    "max_crashes": 50,
}

OPEN = "SELECT 1 FROM outbox UNION ALL SELECT 1 FROM leases LIMIT 1"
# What a run leaves in the database; who works there and what can be submitted stays.
RECORDS = (
    *("jobs", "outbox", "leases", "outcomes", "dead_letters", "attempts", "effects"),
    *("idempotency_keys", "replay_items", "operator_actions"),
)

SESSIONS = """
SELECT application_name, state, wait_event, now() - state_change, pg_blocking_pids(pid), left(query, 200)
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def until(condition: Callable[[], Awaitable[object]], seconds: float) -> bool:
    """Whether `condition` came true within the time; asks again and again."""
    end = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def make_template(postgres: Postgres) -> None:
    """A migrated database that every run gets a copy of."""
    admin = await asyncpg.connect(postgres.url)
    await admin.execute(f"CREATE DATABASE {TEMPLATE}")
    await admin.close()
    await asyncio.to_thread(migrate, Settings(database_url=SecretStr(in_database(postgres.url, TEMPLATE))))


class Road(StrEnum):
    """The connections of a world, each through a proxy of its own."""

    API_POSTGRES = "API to PostgreSQL"
    RELAY_POSTGRES = "relay to PostgreSQL"
    RELAY_REDIS = "relay to Redis"
    WORKER_POSTGRES = "worker to PostgreSQL"
    WORKER_REDIS = "worker to Redis"
    CLIENT_API = "client to API"


class World:
    """The processes of a run, or of several that want the same, in a database of their own."""

    def __init__(self, shape: Shape, postgres: Postgres, redis: Redis, folder: Path) -> None:
        self.shape = shape
        self.postgres = postgres
        self.redis = redis
        self.handler_log = folder / HANDLER_LOG
        self._sink_log = folder / "sink.err"
        self.database_url = in_database(postgres.url, f"chaos_{shape.name.lower()}")
        self.api_port = free_port()
        self.roads = {
            Road.API_POSTGRES: Proxy(postgres.address.port, PostgresTap),
            Road.RELAY_POSTGRES: Proxy(postgres.address.port, PostgresTap),
            Road.RELAY_REDIS: Proxy(redis.address.port, PlainTap),
            Road.WORKER_POSTGRES: Proxy(postgres.address.port, PostgresTap),
            Road.WORKER_REDIS: Proxy(redis.address.port, PlainTap),
            Road.CLIENT_API: Proxy(self.api_port, PlainTap),
        }
        self._ports: dict[Road, int] = {}
        self.clocks = {role: ShiftedClock(folder, role, seconds) for role, seconds in shape.clocks.items()}
        servers = {"database_url": self.database_url, "redis_url": redis.url}
        self.settings = Settings.model_validate({**CLOCKS, **shape.settings, **servers})
        self.stack = Stack(self.settings, folder / "logs")
        self.workers: list[Process] = []
        self.relays: list[Process] = []
        self.api_url = ""
        self.sink_url = ""
        self._sink: subprocess.Popen[bytes] | None = None
        self._counted: dict[str, dict[str, int]] = {}
        self._refused = 0

    async def __aenter__(self) -> Self:
        admin = await asyncpg.connect(self.postgres.url)
        await admin.execute(f"CREATE DATABASE {urlsplit(self.database_url).path.lstrip('/')} TEMPLATE {TEMPLATE}")
        await admin.close()
        self._pool = await asyncpg.create_pool(self.database_url, min_size=0, max_size=4, timeout=5)
        self._ports = {name: await road.start() for name, road in self.roads.items()}
        self.api_url = f"http://127.0.0.1:{self._ports[Road.CLIENT_API]}"
        await self._start_sink()
        self.api = self.start_api()
        for _ in range(RELAYS):
            self.start_relay()
        for _ in range(self.shape.workers):
            self.start_worker()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stack.close()
        for road in self.roads.values():
            await road.close()
        self._pool.terminate()
        if self._sink is not None:
            self._sink.kill()
            self._sink.wait()

    def start_api(self) -> Process:
        self.api = self.stack.start("api", "--port", str(self.api_port), env=self._env("api", Road.API_POSTGRES))
        return self.api

    def start_relay(self) -> None:
        self.relays.append(self.stack.relay(env=self._env("relay", Road.RELAY_POSTGRES, Road.RELAY_REDIS)))

    def start_worker(self) -> None:
        env = self._env("worker", Road.WORKER_POSTGRES, Road.WORKER_REDIS)
        self.workers.append(self.stack.worker(HANDLERS, env=env))

    async def fetch(self, statement: str, *args: object) -> list[asyncpg.Record]:
        """Rows by a road that no fault is on, but the server's own."""
        try:
            return await self._pool.fetch(statement, *args)
        except AWAY:
            return await self._pool.fetch(statement, *args)  # a session from before a restart

    async def next_run(self, shape: Shape, folder: Path) -> None:
        """Makes ready for another run of the same processes: no job is left of the one before."""
        await self.fetch(f"TRUNCATE {', '.join(RECORDS)}")
        self.shape = shape
        self.handler_log = folder / HANDLER_LOG
        self._counted = await self._sink_counts()
        self._refused = self._refused_ever()

    async def sink_counts(self) -> dict[str, dict[str, int]]:
        """What the sink counted since the beginning of the run."""
        counts = await self._sink_counts()
        return {name: dict(Counter(seen) - Counter(self._counted.get(name))) for name, seen in counts.items()}

    async def _sink_counts(self) -> dict[str, dict[str, int]]:
        async with httpx.AsyncClient(base_url=self.sink_url, verify=False) as client:
            counts: dict[str, Any] = (await client.get("/counts")).json()
        return {name: seen for name, seen in counts.items() if isinstance(seen, dict)}

    async def stop(self) -> list[str]:
        """SIGTERM to every process; who is left when each has had its time, and what the sessions wait for."""
        family = {pid: one for one in self.stack.processes if one.alive() for pid in (one.pid, *children(one.pid))}
        for one in self.stack.processes:
            if one.alive():
                one.send(signal.SIGTERM)

        async def all_gone() -> bool:
            return not any(one.alive() or is_running(pid) for pid, one in family.items())

        if await until(all_gone, EXIT_SECONDS):
            return []
        sessions = [" ".join(map(str, row.values())) for row in await self.fetch(SESSIONS)]
        return [f"{one.name} {pid}" for pid, one in family.items() if is_running(pid)] + sessions

    def late_refused(self) -> int:
        """How many late endings the workers were refused in this run, by their own word."""
        return self._refused_ever() - self._refused

    def _refused_ever(self) -> int:
        return sum(one.stderr.count('"event": "fenced"') for one in self.stack.processes if one.name == "worker")

    def _env(self, role: str, postgres: Road, redis: Road | None = None) -> dict[str, str]:
        """The environment that sends a process by these roads, under the clock of its role."""
        to_redis = {} if redis is None else {"OUTLAST_REDIS_URL": _through(self.redis.url, self._ports[redis])}
        clock = self.clocks[role].environment if role in self.clocks else {}
        return {"OUTLAST_DATABASE_URL": _through(self.database_url, self._ports[postgres]), **to_redis, **clock}

    async def _start_sink(self) -> None:
        said = self._sink_log.with_suffix(".out")
        with self._sink_log.open("wb") as log, said.open("wb") as out:
            words = [sys.executable, "-m", "examples.sink", "--port", "0"]
            self._sink = spawn(words, signal.SIGKILL, stdout=out, stderr=log)

        async def ready() -> bool:
            return said.read_bytes().endswith(b"\n")

        if not await until(ready, READY_SECONDS):
            raise TimeoutError(f"the sink is not ready: {self._sink_log.read_text()}")
        self.sink_url = said.read_text().split()[1]


def _through(url: str, port: int) -> str:
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}"))
