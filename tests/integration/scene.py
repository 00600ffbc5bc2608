"""A relay's leader, its outbox and its broker, moved pass by pass by a clock that a test holds."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from app.settings import Settings
from app.store import fleet
from app.store.database import Database, Session, connect
from app.store.fleet import Fleet, Incarnation
from app.store.relay import Leadership, OutboxUpkeep
from app.transport import keys
from app.transport.base import Delivery
from app.transport.connect import publisher
from tests.integration.raw_redis import RawRedis
from workers.relaying.dispatcher import Dispatcher

KIND = "test.job"
QUEUE = "default"
STREAM = keys.stream(QUEUE)


class Clock:
    """Monotonic seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds


class Scene:
    """One leader, its outbox and its broker."""

    def __init__(self, settings: Settings, db: Database, leadership: Leadership, session: Session, raw: RawRedis):
        self.settings = settings
        self.db = db
        self.session = session
        self.raw = raw
        self.clock = Clock()
        self.publisher = publisher(settings)
        self.leadership = leadership
        self.leader = self.new_leader(leadership)

    def new_leader(self, leadership: Leadership) -> Dispatcher:
        return Dispatcher(
            self.settings, leadership, self.publisher, Fleet(self.db), OutboxUpkeep(self.db), clock=self.clock
        )

    async def submit(
        self, count: int = 1, *, queue: str = QUEUE, kind: str = KIND, priority: int = 5, solo: bool = False
    ) -> list[UUID]:
        """Outbox rows that are due, in the order of their ids."""
        rows = await self.session.fetch(
            "INSERT INTO outbox (job_id, kind, queue, priority, timeout_seconds, max_retries, solo) "
            "SELECT outlast_uuid_v7(), $1, $2, $3, 60, 2, $4 FROM generate_series(1, $5) RETURNING job_id",
            kind,
            queue,
            priority,
            solo,
            count,
        )
        return sorted(row["job_id"] for row in rows)

    async def worker(
        self, slots: int, *, queues: Sequence[str] = (QUEUE,), kinds: Sequence[str] = (KIND,), transport: str = "redis"
    ) -> UUID:
        """A live worker's row; its lock is held by this scene's session."""
        me = Incarnation(uuid4(), "worker", queues, kinds, slots, transport)
        await fleet.register(self.session, me)
        self.clock.pass_seconds(1)  # the leader sees it in the next pass
        return me.id

    async def claimed(self, deliveries: Sequence[Delivery]) -> None:
        """The rows leave the outbox, as a claim does it."""
        await self.session.execute("DELETE FROM outbox WHERE job_id = ANY($1)", [one.job_id for one in deliveries])

    async def passes(self, count: int = 3, *, seconds: float = 0.05) -> int:
        moved = 0
        for _ in range(count):
            self.clock.pass_seconds(seconds)
            moved += await self.leader.run_once()
        return moved

    async def entries(self, queue: str = QUEUE) -> list[UUID]:
        reader = publisher(self.settings)
        try:
            return [one.job_id for one in await reader.read_all(queue, 10_000)]
        finally:
            await reader.close()

    async def added(self) -> int:
        """Entries added to streams since the scene began, those that are gone among them."""
        stats = re.search(r"cmdstat_xadd:calls=(\d+).*failed_calls=(\d+)", await self.raw("INFO", "commandstats"))
        return int(stats[1]) - int(stats[2]) if stats else 0


@asynccontextmanager
async def leading(settings: Settings, db: Database) -> AsyncIterator[Scene]:
    """A scene whose leader leads."""
    # Workers here are rows that nobody beats for: they must outlive the slowest test.
    settings = settings.model_copy(update={"lease_seconds": 600})
    session = await connect(settings, "test")
    leadership = await Leadership.open(settings)
    assert await leadership.try_lead()
    raw = RawRedis(settings)
    await raw("CONFIG", "RESETSTAT")
    made = Scene(settings, db, leadership, session, raw)
    yield made
    await made.publisher.close()
    await raw.close()
    leadership.close()
    await session.close()
