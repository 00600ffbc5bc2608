"""Where failpoints are tried: a world that obeys a folder, and somebody who starts again whatever ends there."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import redis

from app.domain.states import TERMINAL
from app.failpoints import Action, Point, fired, order, pid_of
from app.transport import keys
from tests.chaos.caller import Caller
from tests.chaos.evidence import HOMES
from tests.chaos.faults import Faults
from tests.chaos.observer import Observer
from tests.chaos.plan import Shape
from tests.chaos.records import Finding
from tests.chaos.world import OPEN, POLL_SECONDS, READY_SECONDS, World, until
from tests.processes import Process
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

WORKERS = 2
WORKERS_READY = 2
REACH_SECONDS = 90.0
PASSED_BY_SECONDS = 3.0
QUIET_SECONDS = 90.0
CLOCKS: Mapping[str, float] = {
    "lease_seconds": 2.5,
    "suspect_seconds": 1.2,
    "worker_concurrency": 8,
    "sweep_seconds": 0.1,
}

HOME = f"SELECT * FROM ({HOMES}) homes WHERE job_id = $1"
JOB = "SELECT id::text AS job_id FROM jobs WHERE metadata::jsonb ->> 'key' = $1"
HOLDER = "SELECT w.pid FROM leases l JOIN workers w ON w.id = l.worker_id WHERE l.job_id::text = $1"
RECORDED = "SELECT FROM effects WHERE job_id::text = $1 AND state = 'recorded'"
READY = """
SELECT count(*) FILTER (WHERE role = 'worker' AND NOT draining), count(*) FILTER (WHERE leader)
FROM workers WHERE left_at IS NULL AND heartbeat_at > now() - make_interval(secs => $1)
"""


@dataclass
class Ground:
    """One world, its clients, and the folder its processes obey."""

    world: World
    session: asyncpg.Connection
    transport: str
    folder: Path
    caller: Caller
    faults: Faults
    observer: Observer
    findings: list[Finding] = field(default_factory=list[Finding])
    loops: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    one_question: asyncio.Lock = field(default_factory=asyncio.Lock)
    ids: dict[str, str] = field(default_factory=dict[str, str])

    def order(self, action: Action, point: Point, detail: str) -> int:
        """Lays an order out; how many there were before."""
        before = len(fired(self.folder, point, detail))
        order(self.folder, action, point, detail)
        return before

    async def obeyed(self, point: Point, detail: str, before: int, key: str, attempt: int) -> tuple[int, float] | None:
        """Who has obeyed, and when; nothing when the job has ended some time ago and nobody came there."""
        found: list[Path] = []

        async def one_more_or_ended() -> bool:
            found[:] = fired(self.folder, point, detail)[before:]
            ended_at = await self.ended_at(key, attempt)
            return bool(found) or (ended_at is not None and time.time() - ended_at > PASSED_BY_SECONDS)

        await until(one_more_or_ended, REACH_SECONDS)
        return (pid_of(found[0]), found[0].stat().st_ctime) if found else None

    async def job(self, key: str) -> str | None:
        """The id of the job that was submitted with this key."""
        if key not in self.ids and (rows := await self._fetch(JOB, key)):
            self.ids[key] = rows[0]["job_id"]
        return self.ids.get(key)

    async def ended_at(self, key: str, attempt: int = 1) -> float | None:
        """When the job of this key ended in this attempt or a later one."""
        job_id = await self.job(key)
        rows = await self._fetch(HOME, job_id) if job_id else []
        return next((row["ended_at"] for row in rows if row["state"] in TERMINAL and row["attempt"] >= attempt), None)

    async def holder(self, job_id: str) -> int:
        """The process that runs the job."""
        [row] = await self._fetch(HOLDER, job_id)
        return row["pid"]

    async def recorded(self, job_id: str) -> bool:
        return bool(await self._fetch(RECORDED, job_id))

    async def quiet(self) -> bool:
        """Waits until nothing is open, nothing is left at the broker, and a leader and workers enough are heard."""

        async def is_quiet() -> bool:
            [[workers, leaders]] = await self._fetch(READY, self.world.settings.suspect_seconds)
            return workers >= WORKERS_READY and leaders and not await self._fetch(OPEN) and not self.at_broker()

        return await until(is_quiet, QUIET_SECONDS)

    async def _fetch(self, statement: str, *args: object) -> list[asyncpg.Record]:
        async with self.one_question:
            return await self.session.fetch(statement, *args)

    def at_broker(self) -> int:
        """How many entries the stream holds."""
        if self.transport == "pg":
            return 0
        address, stream = self.world.redis.address, keys.stream("default")
        with redis.Redis(port=address.port, password=address.password) as broker:
            return broker.xlen(stream)

    def replay(self, job_id: str, replay_id: str) -> Process:
        words = ["dead", "replay", job_id, "--reason", "fixed", "--replay-id", replay_id, "--yes"]
        return self.world.stack.start(*words)

    async def end(self) -> None:
        """Nobody looks on any more, and nothing is started again."""
        for loop in self.loops:
            loop.cancel()
            with suppress(asyncio.CancelledError):
                await loop

    async def tend(self) -> None:
        """Starts again what has ended, until cancelled."""
        world = self.world
        while True:
            if not world.api.alive():
                world.start_api()
            for group, start in ((world.relays, world.start_relay), (world.workers, world.start_worker)):
                for one in [one for one in group if not one.alive()]:
                    group.remove(one)
                    start()
            await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def ground(transport: str, postgres: Postgres, broker: Redis, folder: Path) -> AsyncIterator[Ground]:
    """A world on this transport, ready to be hit."""
    orders = folder / "failpoints"
    orders.mkdir(parents=True, mode=0o700)
    world = World(_shape(folder.name), postgres, broker, folder)
    world.settings = world.settings.model_copy(update={"transport": transport, "failpoints": str(orders)})
    world.stack.settings = world.settings
    async with world:
        caller = Caller(world.api_url, folder / "client.log", {"log": str(world.handler_log), "sink": world.sink_url})
        faults, observer = Faults(world, folder / "faults.log", caller.cancel), Observer(world.database_url)
        session = await asyncpg.connect(world.database_url)
        here = Ground(world, session, transport, orders, caller, faults, observer)
        if not await until(caller.healthy, READY_SECONDS):
            raise TimeoutError(f"the API is not ready: {world.api.log_tail()}")
        here.loops += [asyncio.create_task(loop) for loop in (here.observer.run(), here.tend())]
        try:
            yield here
        finally:
            await here.end()
            await caller.close()
            session.terminate()


def let_go(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _shape(name: str) -> Shape:
    return Shape(f"N2_{name.replace('-', '_')}", "", jobs=0, seconds=0, faults={}, settings=CLOCKS, workers=WORKERS)
