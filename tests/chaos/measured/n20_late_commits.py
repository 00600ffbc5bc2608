"""N20: a submit that commits late, behind others that began later, is started as soon as it is committed."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime

import asyncpg

from app.store.database import sql
from tests.chaos.measured.figure import LONG, Figure, Measured, Sheet, quantile
from tests.chaos.measured.handlers import NOTHING
from tests.chaos.measured.scene import Scene
from tests.chaos.records import Finding

INTERLEAVINGS = 1_000 if LONG else 200
TOGETHER = 20
HELD_SECONDS_MAX = 1.0
ROLLED_BACK_SHARE = 1 / 3
START_SECONDS = 1.0

NEW_JOB = (
    *([None], [None], ["default"], [NOTHING], ["default"], [5], ["{}"], [None], [0], [60.0], [None], [None], [None]),
)
STARTED = "SELECT job_id::text AS id, started_at FROM outcomes WHERE job_id = ANY($1::text[]::uuid[])"


class Late:
    """Submits by the product's own statement, each in a transaction that stays open for a while."""

    def __init__(self, scene: Scene, dice: random.Random) -> None:
        self.committed: dict[str, datetime] = {}
        self.rolled_back: list[str] = []
        self._scene = scene
        self._dice = dice
        self._left = INTERLEAVINGS

    async def run(self) -> None:
        await asyncio.gather(*(self._lane() for _ in range(TOGETHER)))

    async def _lane(self) -> None:
        connection = await asyncpg.connect(self._scene.database_url)
        while self._left > 0:
            self._left -= 1
            await self._one(connection)
        await connection.close()

    async def _one(self, connection: asyncpg.Connection) -> None:
        transaction = connection.transaction()
        await transaction.start()
        [row] = await connection.fetch(sql("submit"), *NEW_JOB)
        await asyncio.sleep(self._dice.uniform(0, HELD_SECONDS_MAX))
        if self._dice.random() < ROLLED_BACK_SHARE:
            await transaction.rollback()
            self.rolled_back.append(str(row["id"]))
            return
        at = await connection.fetchval("SELECT clock_timestamp()")
        await transaction.commit()
        self.committed[str(row["id"])] = at
        self._scene.accepted.append(str(row["id"]))


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """Seconds from each commit to the start; of what was rolled back nothing may be left."""
    late = Late(scene, dice)
    await late.run()
    await scene.all_ended()
    started = {row["id"]: row["started_at"] for row in await scene.fetch(STARTED, list(late.committed))}
    waited = [(started[one] - at).total_seconds() for one, at in late.committed.items() if one in started]
    ghosts = await scene.fetch(STARTED, late.rolled_back)
    return Sheet(
        faults=INTERLEAVINGS,
        jobs=len(late.committed),
        figures=[Figure(f"late commit to start, worst of {len(waited)}", quantile(waited, 1), START_SECONDS)],
        findings=[Finding("unexpected", row["id"], "rolled back, and started") for row in ghosts],
    )


RUN = Measured("N20", "submits that commit late", measure, alone=False)
