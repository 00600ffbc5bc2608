"""Looks at the record all through a run: where each job is, and whether every job is in exactly one place."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg

from app.domain.states import State
from app.store.audit import ALL
from app.store.database import AWAY, sql
from tests.chaos.records import Finding, Sighting

LOOK_SECONDS = 0.1
WHOLE_EVERY = 10  # looks; what ended a while ago should be as it was, and there is ever more of it
LATELY_SECONDS = 5.0
FINDINGS_MAX = 20

HOMES = """
SELECT job_id::text,
  CASE WHEN NOT deferred THEN 'queued' WHEN attempt = 0 THEN 'scheduled' ELSE 'retrying' END AS state, attempt,
  retries, crashes, extract(epoch FROM due_at)::float8 AS due_at, extract(epoch FROM now())::float8 AS at
FROM outbox
UNION ALL SELECT job_id::text, 'running', attempt, retries, crashes, NULL, extract(epoch FROM now()) FROM leases
UNION ALL SELECT job_id::text, 'dead', attempt, retries, crashes, NULL, extract(epoch FROM now())
  FROM dead_letters WHERE died_at > now() - make_interval(secs => $1)
UNION ALL SELECT job_id::text, state, attempt, retries, crashes, NULL, extract(epoch FROM now())
  FROM outcomes WHERE finished_at > now() - make_interval(secs => $1)
"""
EVER_SECONDS = 1e6


class Observer:
    """Looks every 100 ms, through restarts of the server. Keeps what changed.

    At jobs that ended a while ago, and at the conservation law, it looks every second.
    """

    def __init__(self, database_url: str) -> None:
        self.sightings: list[Sighting] = []
        self.looks = 0
        self._broken: list[Finding] = []
        self._url = database_url
        self._last: dict[str, tuple[object, ...]] = {}

    @property
    def findings(self) -> list[Finding]:
        """What was broken; that nobody could look is one, too."""
        return self._broken if self.looks else [Finding("blind", "", "no look at the record came to its end")]

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
        """One look at the homes, and on every tenth occasion at all of them and at the conservation law."""
        whole = self.looks % WHOLE_EVERY == 0
        for row in await connection.fetch(HOMES, EVER_SECONDS if whole else LATELY_SECONDS):
            self._see(row)
        if whole:
            for row in await connection.fetch(sql("audit_conservation"), FINDINGS_MAX, ALL):
                self._broken.append(Finding("conservation", str(row["job_id"]), row["detail"]))
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
