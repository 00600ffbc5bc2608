"""The HTTP edge of a test, listening on a port of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from httpx import AsyncClient

from app.api.application import create
from app.api.serve import Protocol, Server
from app.domain.kinds import Defaults, Kind
from app.settings import Settings
from app.store import kinds
from app.store.database import Database

ANY = Kind("any", "1", {}, {}, Defaults())
COUNTED = Kind(
    "counted",
    "1",
    {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
    {},
    Defaults(timeout_seconds=7, max_retries=1, queue="slow", priority=2),
)


@asynccontextmanager
async def listening(settings: Settings, db: Database) -> AsyncIterator[AsyncClient]:
    """A client of a server that knows the kinds `any` and `counted`."""
    await kinds.publish(db, [ANY, COUNTED])
    async with serving(settings) as client:
        yield client


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[AsyncClient]:
    """A client of a server, whatever its database knows and whether or not it answers."""
    app = create(settings)
    server = Server(app, uvicorn.Config(app, port=0, log_config=None, http=Protocol, ws="none"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        assert not running.done()
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        yield client
    server.should_exit = True
    await running


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it came over the wire; `body` is parsed JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any


async def send_raw(client: AsyncClient, head: str, *parts: bytes) -> Raw:
    """Sends bytes as they are and reads the answer, whether or not all of the request was wanted."""
    reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
    try:
        for part in (head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n", *parts):
            writer.write(part)
        lines = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        body = await asyncio.wait_for(reader.readexactly(int(headers["content-length"])), 10)
        return Raw(int(lines[0].split()[1]), headers, json.loads(body))
    finally:
        writer.close()


async def stored(db: Database, job_id: str) -> Any:
    """The input of a job as its column has it."""
    async with db.session() as connection:
        return await connection.fetchval("SELECT input::text FROM jobs WHERE id = $1", job_id)


async def counts(db: Database) -> tuple[int, int, int]:
    """Rows of `jobs`, `outbox` and `idempotency_keys`."""
    async with db.session() as connection:
        row = await connection.fetchrow(
            "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM outbox), (SELECT count(*) FROM idempotency_keys)"
        )
    assert row is not None
    return row[0], row[1], row[2]
