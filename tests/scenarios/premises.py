"""Servers of their own, which a test may stop, cut and empty, with an API and relays on them; workers come and go."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any, Self, TypeVar
from uuid import UUID

from app import failpoints
from app.failpoints import Action, Point
from app.settings import Settings
from app.store.audit import run_checks
from app.store.database import Database
from app.store.fleet import Fleet, Live
from app.transport import keys
from tests.client import Client, Journal, journal_of
from tests.integration.raw_redis import RawRedis
from tests.processes import Process, Stack, children, wait_until
from workers.broker_audit import broker_findings
from workers.dev.redis import Redis

T = TypeVar("T")

HANDLERS = ["tests.handlers.steps"]
STREAM = keys.stream("default")
START_SECONDS = 240.0  # of a process, while many others start
HEARD_SECONDS = 2.0  # processes that a test killed are not counted for longer


class Premises:
    """API and one relay run all the time. Tests have it one after another, each with a journal of its own."""

    def __init__(self, stack: Stack, redis: Redis) -> None:
        self.stack = stack
        self.redis = redis
        self.journal_path = Path()
        self.relays = [stack.relay()]
        self.workers: list[Process] = []
        self._usual: list[Process] = []
        self._runner = asyncio.Runner()
        self._db = self.run(Database.open(stack.settings, "test", size_max=2))
        stack.api()
        self.client = Client(stack.api_url)
        self.until_led()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._db.close())
        self._runner.close()

    @property
    def settings(self) -> Settings:
        return self.stack.settings

    @property
    def journal(self) -> Journal:
        return journal_of(self.journal_path)

    # Processes

    def work(self, count: int = 1) -> None:
        """So many workers at least, of 100 slots each, that know the jobs of these tests; no others."""
        self._stop([worker for worker in self.workers if worker not in self._usual])
        missing = count - len(self._usual)
        self._usual += self._heard_of([self._worker(HANDLERS, {}) for _ in range(missing)], "worker")

    def worker(self, handlers: Sequence[str] = HANDLERS, **env: str) -> Process:
        """A worker of its own kind; `env` are settings, as `BLOCK_SECONDS="5"`."""
        return self._heard_of([self._worker(handlers, env)], "worker")[0]

    def relay(self, count: int) -> None:
        """So many relays at least."""
        missing = [self.stack.relay() for _ in range(count - len(self.relays))]
        self.relays += missing
        self._heard_of(missing, "relay")

    def stop_workers(self) -> None:
        """As a deploy does it; afterwards none is heard."""
        self._stop(list(self.workers))
        self._usual.clear()

    def heard(self, role: str) -> list[Live]:
        return [one for one in self.run(Fleet(self._db).live(HEARD_SECONDS)) if one.role == role]

    def until_led(self) -> Live:
        """The relay that leads."""
        led = wait_until(lambda: [one for one in self.heard("relay") if one.leader], START_SECONDS, what="a leader")
        return led[0]

    def readiness(self) -> str:
        return self.client.http.get("/readyz").json()["status"]

    def until_ready(self, status: str = "ok", seconds: float = 60) -> None:
        wait_until(lambda: self.readiness() == status, seconds, what=f"readiness {status}")

    def order(self, action: Action, point: Point, detail: str = "") -> None:
        """To the next process that gets to this point."""
        failpoints.order(Path(self.settings.failpoints), action, point, detail)

    def fired(self, point: Point, detail: str = "") -> int:
        """How often a process has obeyed an order at this point."""
        return len(failpoints.fired(Path(self.settings.failpoints), point, detail))

    def resume(self, point: Point, detail: str = "") -> None:
        """Continues whom the last order at this point has stopped."""
        obeyed = failpoints.fired(Path(self.settings.failpoints), point, detail)
        os.kill(failpoints.pid_of(obeyed[-1]), signal.SIGCONT)

    def kill(self, pids: Iterable[int]) -> None:
        """SIGKILL to processes of these workers."""
        ours = {pid for worker in self.workers for pid in children(worker.pid)}
        for pid in pids:
            assert pid in ours
            os.kill(pid, signal.SIGKILL)

    # Jobs

    def submit(self, count: int = 1, *, kind: str = "test.steps", hold: bool = False, **fields: Any) -> list[str]:
        """Jobs of one effect; with `hold` each goes on when the test says so."""
        plan = {"journal": str(self.journal_path), "steps": ["one"], "hold": ["one"] if hold else []}
        plan |= fields.pop("plan", {})
        return self.client.submit_all(kind, [plan] * count, **fields)

    def go_on(self) -> None:
        """Lets the jobs that hold go on, those to come too."""
        Path(f"{self.journal_path}.one").touch()

    def until_held(self, count: int, seconds: float = 60) -> None:
        wait_until(lambda: self.journal.count("hold") >= count, seconds, what=f"{count} jobs that hold")

    def until_done(self, ids: Sequence[str], seconds: float = 90) -> None:
        """Waits until all of them are done; what was charged to them is for the test to ask."""
        wait_until(lambda: self.count_done(ids) == len(ids), seconds, what=f"{len(ids)} jobs done")

    def count_done(self, ids: Sequence[str]) -> int:
        found = self.sql("SELECT count(*) FROM outcomes WHERE state = 'done' AND job_id = ANY($1)", _uuids(ids))
        return found[0][0]

    def charged(self, ids: Sequence[str]) -> dict[str, int]:
        """Attempts, retries and crashes of ended jobs, in sum."""
        statement = "SELECT sum(attempt) AS attempts, sum(retries) AS retries, sum(crashes) AS crashes FROM outcomes"
        return dict(self.sql(f"{statement} WHERE job_id = ANY($1)", _uuids(ids))[0])

    def performed_once(self, ids: Sequence[str]) -> None:
        """Every one of these jobs started once and called its effect once, and no other did."""
        assert sorted(line[0] for line in self.journal.lines("start")) == sorted(ids)
        assert sorted(line[0] for line in self.journal.lines("perform")) == sorted(ids)

    # What the servers say

    def sql(self, statement: str, *args: Any) -> list[Any]:
        return self.run(self._sql(statement, args))

    def broker(self, *command: str | int) -> Any:
        return self.run(self._broker(command))

    def until_empty(self) -> None:
        """Waits until no entry is left, read or unread."""
        wait_until(lambda: self.length() == 0 and self.pending() == 0, 60, what="an empty stream")

    def length(self) -> int:
        """Entries in the stream."""
        return self.broker("XLEN", STREAM)

    def pending(self) -> int:
        """Entries that are in somebody's hands."""
        return self.broker("XPENDING", STREAM, keys.GROUP)[0]

    def calls(self, command: str) -> int:
        """How often the broker has carried out a command since its start, or since CONFIG RESETSTAT."""
        return self.run(self.calls_now(command))

    async def calls_now(self, command: str) -> int:
        """The same, for who runs on the loop already."""
        lines = (await self._broker(("INFO", "commandstats"))).splitlines()
        of_it = [line for line in lines if line.startswith(f"cmdstat_{command}:")]
        facts = [dict(pair.split("=") for pair in line.partition(":")[2].split(",")) for line in of_it]
        return sum(int(one["calls"]) - int(one["failed_calls"]) for one in facts)

    def until_reading(self, count: int = 1) -> None:
        """Waits until so many workers wait in a blocking read: ready is said before the first of them."""
        wait_until(lambda: int(self.fact("clients", "blocked_clients")) >= count, 60, what=f"{count} waiting reads")

    def fact(self, section: str, name: str) -> str:
        """A line of the broker's INFO."""
        lines = self.broker("INFO", section).splitlines()
        return next(line.partition(":")[2] for line in lines if line.startswith(f"{name}:"))

    def make_ready(self) -> None:
        """As a test may expect it: the broker is up, and everybody has noticed."""
        if not self.redis.is_ready():
            self.start_redis()
        self.broker("CONFIG", "RESETSTAT")

    def start_redis(self) -> None:
        self.redis.spawn()
        wait_until(self.redis.is_ready, 30, what="Redis again")

    def stop_redis(self, *, keeping_data: bool = True) -> None:
        """As a crash does it, or as a host that is gone."""
        self.redis.process.kill()
        self.redis.process.wait()
        if not keeping_data:
            rmtree(self.redis.data)
            self.redis.prepare()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Something asynchronous, to its end."""
        return self._runner.run(work)

    def check(self) -> None:
        """The whole audit, of the record and of the broker, finds nothing."""
        assert self.run(self._findings()) == []

    def _worker(self, handlers: Sequence[str], env: dict[str, str]) -> Process:
        worker = self.stack.worker(handlers, env={f"OUTLAST_{name}": text for name, text in env.items()})
        self.workers.append(worker)
        return worker

    def _heard_of(self, started: list[Process], role: str) -> list[Process]:
        """These, once each of them is heard: a relay itself, a worker through its process."""

        def all_heard() -> bool:
            rows = self.sql("SELECT pid FROM workers WHERE role = $1 AND left_at IS NULL", role)
            pids = {row["pid"] for row in rows}
            return all(pids & {one.pid, *children(one.pid)} for one in started)

        wait_until(all_heard, START_SECONDS, what=f"{len(started)} more of the role {role}")
        return started

    def _stop(self, workers: list[Process]) -> None:
        for worker in workers:
            worker.send(signal.SIGTERM)
        for worker in workers:
            worker.wait(60)
            self.workers.remove(worker)

    async def _sql(self, statement: str, args: Sequence[Any]) -> list[Any]:
        async with self._db.session() as connection:
            return list(await connection.fetch(statement, *args))

    async def _broker(self, command: Sequence[str | int]) -> Any:
        raw = RawRedis(self.settings)
        try:
            return await raw(*command)
        finally:
            await raw.close()

    async def _findings(self) -> list[object]:
        return [*await run_checks(self._db), *await broker_findings(self._db, self.settings)]


def _uuids(ids: Sequence[str]) -> list[UUID]:
    return [UUID(job_id) for job_id in ids]
