"""The system that is measured: default settings, no proxy in between, an API, a relay and workers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import asyncpg
import httpx
from pydantic import SecretStr

from app.settings import Settings
from tests.chaos.measured import handlers
from tests.chaos.world import TEMPLATE, until
from tests.databases import in_database
from tests.processes import Process, Stack, is_running
from workers.dev.embedded import free_port
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

MODULE = "tests.chaos.measured.handlers"
WORKERS = 2
READY_SECONDS = 60.0
END_SECONDS = 60.0
CALL_SECONDS = 12.0
AGAIN_SECONDS = 0.05
TRY_AGAIN = frozenset({429, 503})

LIVE = """
SELECT pid FROM workers
WHERE role = 'worker' AND left_at IS NULL AND heartbeat_at > clock_timestamp() - interval '3 s' ORDER BY started_at
"""
OPEN = "SELECT EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM leases)"
ENDED = "SELECT count(*) FROM outcomes WHERE finished_at >= $1 AND finished_at < $2"
WITHOUT_OUTCOME = """
SELECT id::text FROM unnest($1::text[]::uuid[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM outcomes WHERE job_id = id) AND NOT EXISTS (SELECT FROM dead_letters WHERE job_id = id)
"""


class Scene:
    """`accepted` are the ids of all jobs that were answered with 2xx."""

    def __init__(self, postgres: Postgres, redis: Redis, folder: Path) -> None:
        self.postgres = postgres
        self.redis = redis
        self.accepted: list[str] = []
        self.database_url = in_database(postgres.url, f"measured_{folder.name.lower()}")
        self.settings = Settings(database_url=SecretStr(self.database_url), redis_url=SecretStr(redis.url))
        self.stack = Stack(self.settings, folder / "logs")

    async def __aenter__(self) -> Self:
        admin = await asyncpg.connect(self.postgres.url)
        name = self.database_url.rpartition("/")[2]
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        await admin.close()
        self._pool = await asyncpg.create_pool(
            self.database_url, min_size=0, max_size=4, server_settings={"enable_seqscan": "off"}
        )
        for _ in range(WORKERS):
            self.start_worker()
        self.stack.relay()
        port = free_port()
        self.api = self.stack.start("api", "--port", str(port))
        self.http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=CALL_SECONDS, verify=False)
        if not await until(self._ready, READY_SECONDS):
            raise TimeoutError(f"the workers are not ready: {self.stack.processes[0].log_tail()}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()
        self._pool.terminate()
        self.stack.close()

    async def submit(self, kind: str, inputs: Sequence[dict[str, Any]], **fields: Any) -> list[str]:
        """The ids of new jobs; asks again when it is told to come back. More than one go in a batch."""
        jobs = [{"kind": kind, "input": one, **fields} for one in inputs]
        while True:
            answer = await self.http.post("/v1/jobs/batch", json={"jobs": jobs})
            ids = _ids(answer)
            self.accepted += ids
            if len(ids) == len(jobs):
                return ids
            if answer.status_code not in TRY_AGAIN and not answer.is_success:
                raise AssertionError(f"{answer.status_code} {answer.text[:300]}")
            await asyncio.sleep(AGAIN_SECONDS)

    async def fetch(self, statement: str, *args: object) -> list[asyncpg.Record]:
        return await self._pool.fetch(statement, *args)

    async def fetchval(self, statement: str, *args: object) -> Any:
        return await self._pool.fetchval(statement, *args)

    async def now(self) -> datetime:
        """By the clock of PostgreSQL."""
        return await self.fetchval("SELECT clock_timestamp()")

    async def ended_between(self, began: datetime, ended: datetime) -> int:
        """How many jobs got their outcome in this time."""
        return await self.fetchval(ENDED, began, ended)

    async def workers(self) -> list[int]:
        """The pids of the processes that run jobs."""
        return [row["pid"] for row in await self.fetch(LIVE) if is_running(row["pid"])]

    async def all_ended(self, seconds: float = END_SECONDS) -> bool:
        """Whether nothing waits or runs any more, at last."""

        async def nothing_open() -> bool:
            return not await self.fetchval(OPEN)

        return await until(nothing_open, seconds)

    async def lost(self, first: int) -> list[str]:
        """Jobs that have not ended of those accepted, from the `first` on."""
        return [row["id"] for row in await self.fetch(WITHOUT_OUTCOME, self.accepted[first:])]

    def start_worker(self) -> Process:
        return self.stack.worker([MODULE])

    async def settle(self, workers: int = WORKERS) -> None:
        """Waits until everything has ended and so many workers, as at the beginning, are there."""

        async def quiet() -> bool:
            return not await self.fetchval(OPEN) and len(await self.workers()) >= workers

        await until(quiet, END_SECONDS)

    async def _ready(self) -> bool:
        try:
            answer = await self.http.get("/v1/kinds")
        except httpx.TransportError:
            return False
        known = {kind["name"] for kind in answer.json()["data"]} if answer.is_success else set[str]()
        return handlers.NOTHING in known and len(await self.workers()) == WORKERS


def _ids(answer: httpx.Response) -> list[str]:
    """The ids of the jobs of a batch that were accepted."""
    if not answer.is_success:
        return []
    items: list[dict[str, Any]] = answer.json()["data"]
    return [item["job"]["id"] for item in items if "job" in item]
