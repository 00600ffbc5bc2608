"""`Prefer: wait`: callers that hold the line until their job has ended, served by one poller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.store.database import Database
from app.usecases import read

WAIT_SECONDS_MAX = 60
WAITERS_MAX = 10_000
BATCH_MAX = 1_000
POLL_SECONDS = 0.02
AWAY_POLL_SECONDS = 1.0
POLL_SHARE_MAX = 0.1

_wait = re.compile(r'\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?', re.IGNORECASE).fullmatch


def wait_seconds(preferences: Iterable[str]) -> int:
    """The seconds of the first `wait` among the values of `Prefer` (RFC 7240), 60 at most; 0 without one."""
    for preference in ",".join(preferences).split(","):
        found = _wait(preference)
        if found is not None:
            return min(int(found[1]), WAIT_SECONDS_MAX)
    return 0


class Waiting:
    """All callers of this process that wait, and the one task that looks for the ends of their jobs.

    The poller runs while anybody waits, and takes at most a tenth of its time for looking.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waiters: dict[UUID, set[asyncio.Future[None]]] = {}
        self._count = 0
        self._poller: asyncio.Task[None] | None = None
        self._closed = False

    async def until_settled(self, job_id: UUID, seconds: float) -> bool:
        """Returns when the job is done, cancelled or dead, or when the time is up.

        False, at once, when too many wait already or the process is about to end.
        """
        if self._closed or self._count >= WAITERS_MAX:
            return False
        end = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(job_id, set()).add(end)
        self._count += 1
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self.run(), name="waiting")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await end
        finally:
            self._forget(job_id, end)
        return True

    async def run(self) -> None:
        """Looks again and again while anybody waits."""
        clock = asyncio.get_running_loop().time
        while self._waiters:
            began = clock()
            try:
                await self.run_once()
            except DatabaseAway:
                await asyncio.sleep(AWAY_POLL_SECONDS)
            else:
                await asyncio.sleep(max(POLL_SECONDS, (clock() - began) / POLL_SHARE_MAX))

    async def run_once(self) -> int:
        """Lets go of everybody whose job has ended; how many jobs that were. Raises `DatabaseAway`."""
        ids = iter(list(self._waiters))
        settled = 0
        while batch := list(islice(ids, BATCH_MAX)):
            for job_id in await read.settled(self._db, batch):
                settled += 1
                self._let_go(job_id)
        return settled

    async def close(self) -> None:
        """Lets everybody go; they answer with the job as it is."""
        self._closed = True
        for job_id in list(self._waiters):
            self._let_go(job_id)
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    def _let_go(self, job_id: UUID) -> None:
        for end in self._waiters.get(job_id, ()):
            if not end.done():
                end.set_result(None)

    def _forget(self, job_id: UUID, end: asyncio.Future[None]) -> None:
        self._count -= 1
        ends = self._waiters[job_id]
        ends.discard(end)
        if not ends:
            del self._waiters[job_id]
