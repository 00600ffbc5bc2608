"""A lease begins when the claim takes the row, by the clock of the database, whenever the claim came in."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from app.store.database import sql
from tests.integration.world import KIND, World

NOW = "SELECT clock_timestamp()"
GRACE_SECONDS = 60.0


@pytest.mark.parametrize("way", ["claim", "claim_due"])
async def test_an_attempt_never_begins_before_the_one_before_has_ended(world: World, way: str) -> None:
    """A claim may come in while that one is still being ended, and take the row right after."""
    await world.beat()
    async with world.session.transaction():
        await world.session.fetchval(NOW)
        [job] = await world.submit()
        await world.execute("UPDATE outbox SET due_at = now() - interval '1 minute'")
        ended_at: datetime = await world.session.fetchval(NOW)
        common = (world.worker_id, [KIND], GRACE_SECONDS, GRACE_SECONDS)
        args: tuple[Any, ...] = ([job], *common, False) if way == "claim" else ("default", *common, 1, 0.0)
        [claimed] = await world.session.fetch(sql(way), *args)
        assert claimed["job_id"] == job
        assert await world.session.fetchval("SELECT started_at FROM leases") >= ended_at
        assert claimed["run_seconds"] == pytest.approx(60)
