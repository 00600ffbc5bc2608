"""The whole of it running, on every way a job can take: through Redis, through SQS, and straight from PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import uuid4

import pytest

from app.store.database import Database
from app.store.fleet import Fleet
from tests.client import Client
from tests.processes import Process, Stack

HANDLERS = ["tests.handlers.steps"]
POLL_SECONDS = 0.02


@dataclass
class Running:
    """API and relay are up; workers are for the test to start."""

    stack: Stack
    client: Client
    db: Database
    transport: str

    def worker(self, *, processes: int = 1, env: dict[str, str] | None = None) -> Process:
        return self.stack.worker(HANDLERS, processes=processes, env=env)

    async def workers_entered(self, count: int, seconds: float = 60) -> None:
        """Waits until so many worker processes are heard."""
        fleet = Fleet(self.db)
        async with asyncio.timeout(seconds):
            while sum(one.role == "worker" for one in await fleet.live(self.stack.settings.suspect_seconds)) < count:
                await asyncio.sleep(POLL_SECONDS)


@pytest.fixture(params=["pg", "redis", "sqs"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def running(request: pytest.FixtureRequest, stack: Stack, db: Database, transport: str) -> Running:
    more = {"transport": transport}
    if transport == "sqs":
        more |= {"sqs_endpoint_url": request.getfixturevalue("sqs_url"), "sqs_prefix": f"t{uuid4().hex[:12]}-"}
    stack.settings = stack.settings.model_copy(update=more)
    stack.api()
    stack.relay()
    return Running(stack, Client(stack.api_url), db, transport)
