"""Looks at the record all through a run: where each job is, and whether every job is in exactly one place."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg

from app.domain.states import State
from app.store.database import AWAY, sql
from tests.chaos.records import Finding, Sighting

LOOK_SECONDS = 0.1
FINDINGS_MAX = 20

HOMES = """
SELECT job_id::text,
  CASE WHEN NOT deferred THEN 'queued' WHEN attempt = 0 THEN 'scheduled' ELSE 'retrying' END AS state, attempt,
  retries, crashes, extract(epoch FROM due_at)::float8 AS due_at, extract(epoch FROM now())::float8 AS at
FROM outbox
UNION ALL SELECT job_id::text, 'running', attempt, retries, crashes, NULL, extract(epoch FROM now()) FROM leases
UNION ALL SELECT job_id::text, 'dead', attempt, retries, crashes, NULL, extract(epoch FROM now()) FROM dead_letters
UNION ALL SELECT job_id::text, state, attempt, retries, crashes, NULL, extract(epoch FROM now()) FROM outcomes
"""


class Observer:
    """Looks every 100 ms, through restarts of the server. Keeps what changed."""

    def __init__(self, database_url: str) -> None:
        self.sightings: list[Sighting] = []
        self.findings: list[Finding] = []
        self.looks = 0
        self._url = database_url
        self._last: dict[str, tuple[object, ...]] = {}

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            with suppress(*AWAY):
                await self._session()
            await asyncio.sleep(LOOK_SECONDS)

    async def _session(self) -> None:
        connection = await asyncpg.connect(self._url, timeout=2, command_timeout=5)
        try:
            while True:
                await self.run_once(connection)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            connection.terminate()

    async def run_once(self, connection: asyncpg.Connection) -> None:
        """One look at the homes and one at the conservation law."""
        for row in await connection.fetch(HOMES):
            self._see(row)
        for row in await connection.fetch(sql("audit_conservation"), FINDINGS_MAX):
            self.findings.append(Finding("conservation", str(row["job_id"]), row["detail"]))
        self.looks += 1

    def _see(self, row: asyncpg.Record) -> None:
        seen = tuple(row.values())[:-1]
        if self._last.get(row["job_id"]) == seen:
            return
        self._last[row["job_id"]] = seen
        self.sightings.append(
            Sighting(
                at=row["at"],
                job_id=row["job_id"],
                state=State(row["state"]),
                attempt=row["attempt"],
                retries=row["retries"],
                crashes=row["crashes"],
                due_at=row["due_at"],
            )
        )
