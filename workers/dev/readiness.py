"""Whether the stack accepts work: asked of the API and of what has registered, never assumed."""

from __future__ import annotations

from datetime import datetime

import httpx

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store.arrivals import arrivals, clock
from app.store.database import Database

ASK_SECONDS = 2.0


class Readiness:
    """Ready is: the API says so, a relay leads, every supervisor has a live child, and their kinds are published.

    Only processes that registered after `open` count; rows of an earlier life of the folder do not.
    """

    def __init__(self, settings: Settings, api_url: str, supervisors: int) -> None:
        self._settings = settings
        self._supervisors = supervisors
        self._http = httpx.AsyncClient(base_url=api_url, timeout=ASK_SECONDS, trust_env=False)
        self._database: Database | None = None
        self._since: datetime | None = None

    async def open(self) -> None:
        """Takes the moment from which processes count. Raises `DatabaseAway`."""
        self._database = await Database.open(self._settings, "dev", size_max=1)
        self._since = await clock(self._database)

    async def reached(self) -> bool:
        return await self._registered() and await self._api_ready()

    async def close(self) -> None:
        await self._http.aclose()
        if self._database:
            await self._database.close()

    async def _registered(self) -> bool:
        assert self._database is not None
        assert self._since is not None
        try:
            joined = await arrivals(self._database, self._since)
        except DatabaseAway:
            return False
        return joined.led and joined.kinds_published and joined.workers >= self._supervisors

    async def _api_ready(self) -> bool:
        try:
            answer = await self._http.get("/readyz")
        except httpx.HTTPError:
            return False
        return answer.is_success
