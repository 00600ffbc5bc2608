"""What is done to a world. Each fault says what it hit, or nothing when there was nothing to hit."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import sha1
from pathlib import Path

import asyncpg
import redis

from app.store.database import AWAY
from app.transport import keys
from tests.chaos.plan import Fault
from tests.chaos.records import Finding, Fired
from tests.chaos.world import World, until
from tests.processes import ROOT, Process, is_running

HIT_SECONDS = 8.0
EXIT_SECONDS = 15.0
ENTER_SECONDS = 30.0
REDIS_AWAY_SECONDS = 10.0
REPLAY_ID = "chaos"
REPLAY_KILLED_AFTER_SECONDS = (0.8, 3.0)

PUBLISH = sha1((ROOT / "app/transport/scripts/publish.lua").read_bytes(), usedforsecurity=False).hexdigest()

HOLDERS = """
SELECT w.pid, min(l.job_id::text) AS job_id, min(l.attempt) AS attempt
FROM leases l JOIN workers w ON w.id = l.worker_id
WHERE w.role = 'worker' AND w.left_at IS NULL GROUP BY w.pid ORDER BY w.pid
"""
BEYOND = """
SELECT FROM outcomes WHERE job_id = $1::text::uuid UNION ALL SELECT FROM dead_letters WHERE job_id = $1::text::uuid
"""
TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name LIKE 'outlast %' AND datname = current_database() AND pid <> pg_backend_pid()
"""
OPEN = "SELECT 1 FROM outbox UNION ALL SELECT 1 FROM leases LIMIT 1"
DEAD = "SELECT job_id::text FROM dead_letters"


class Faults:
    """Fires the faults of a plan, in order. `fired` is the fault log, `findings` what a fault itself found wrong."""

    def __init__(self, world: World, log: Path) -> None:
        self.fired: list[Fired] = []
        self.findings: list[Finding] = []
        self.to_replay: frozenset[str] = frozenset()
        self._world = world
        self._file = log.open("a", buffering=1)
        self._kinds: dict[str, Callable[[float], Awaitable[str | None]]] = {
            "worker killed": self.kill_worker,
            "worker and supervisor killed": self.kill_worker_with_supervisor,
            "worker frozen": self.freeze_worker,
            "worker restarted": self.restart_worker,
            "relay killed": self.kill_relay,
            "API killed": self.kill_api,
            "request cut off": self.cut_request,
            "API commit swallowed": lambda _: self.swallow_commit("outlast api"),
            "worker commit swallowed": lambda _: self.swallow_commit("outlast worker"),
            "relay commit swallowed": lambda _: self.swallow_commit("outlast relay"),
            "XADD swallowed": self.swallow_xadd,
            "Redis flushed": self.flush,
            "Redis away": self.take_redis_away,
            "PostgreSQL restarted": lambda _: self.restart_postgres(signal.SIGINT),
            "postmaster killed": lambda _: self.restart_postgres(signal.SIGKILL),
            "sessions terminated": self.terminate_sessions,
            "links cut": self.cut_links,
            "links black": self.black_hole,
            "replay killed": self.kill_replay,
        }

    async def fire_all(self, faults: Sequence[Fault]) -> None:
        began = time.monotonic()
        for fault in faults:
            await asyncio.sleep(began + fault.at - time.monotonic())
            at = time.time()
            hit = await self._kinds[fault.name](fault.draw)
            if hit is not None:
                self._note(Fired(at, time.time(), fault.name, hit))
        self._file.close()

    async def kill_worker(self, draw: float) -> str | None:
        """SIGKILL to a child that holds a lease now."""
        if (held := await self._holder(draw)) is None:
            return None
        pid = held[0]
        os.kill(pid, signal.SIGKILL)
        return str(pid)

    async def kill_worker_with_supervisor(self, draw: float) -> str | None:
        if (held := await self._holder(draw)) is None:
            return None
        pid = held[0]
        supervisor = self._supervisor_of(pid)
        for victim in (supervisor.pid, pid):
            os.kill(victim, signal.SIGKILL)
        supervisor.popen.wait()
        self._world.workers.remove(supervisor)
        self._world.start_worker()
        return f"{supervisor.pid} {pid}"

    async def freeze_worker(self, draw: float) -> str | None:
        """SIGSTOP to a child that holds a lease until somebody else has ended its job; then SIGCONT."""
        if (held := await self._holder(draw)) is None:
            return None
        pid, job_id, attempt = held
        os.kill(pid, signal.SIGSTOP)

        async def ended() -> object:
            return await self._world.fetch(BEYOND, job_id)

        try:
            beyond = await until(ended, 2 * self._world.settings.lease_seconds + HIT_SECONDS)
        finally:
            os.kill(pid, signal.SIGCONT)
        return f"{pid} {job_id} {attempt}" if beyond else None

    async def restart_worker(self, _: float) -> str | None:
        """Another worker is started; once it has entered an old one gets SIGTERM, and must leave with 0 in time."""
        self._world.start_worker()
        leaving, entering = self._world.workers.pop(0), self._world.workers[-1]

        async def entered() -> bool:
            return "worker_entered" in entering.stderr

        if not await until(entered, ENTER_SECONDS):
            return None
        leaving.send(signal.SIGTERM)
        await self._gone(leaving)
        return str(leaving.pid)

    async def kill_relay(self, draw: float) -> str | None:
        relay = self._world.relays.pop(int(draw * len(self._world.relays)))
        relay.kill()
        self._world.start_relay()
        return str(relay.pid)

    async def kill_api(self, _: float) -> str | None:
        before = self._world.api
        before.kill()
        self._world.start_api()
        return str(before.pid)

    async def cut_request(self, draw: float) -> str | None:
        """Cuts a client off once its submit has been sent: before the answer, or in place of it."""
        road = self._world.roads["api"]
        trap = road.cut_after_request if draw < 0.5 else road.swallow
        return await _within(trap(lambda text: text.startswith("POST /v1/jobs ")))

    async def swallow_commit(self, application: str) -> str | None:
        about = await _within(self._world.roads["postgres"].swallow(lambda text: text.startswith(f"{application}:")))
        return about and " ".join(about.split())[:100]

    async def swallow_xadd(self, _: float) -> str | None:
        about = await _within(self._world.roads["redis"].swallow(lambda text: PUBLISH in text))
        return about and "publish"

    async def flush(self, _: float) -> str | None:
        with redis.Redis(port=self._world.redis.address.port, password=self._world.redis.address.password) as broker:
            held = broker.xlen(keys.stream("default"))
            broker.execute_command("FLUSHALL")  # pyright: ignore[reportUnknownMemberType]  # its **options
        return f"{held} entries"

    async def take_redis_away(self, _: float) -> str | None:
        """Killed, and back empty after a while."""
        self._world.redis.process.kill()
        self._world.redis.process.wait()
        await asyncio.sleep(REDIS_AWAY_SECONDS)
        await self._world.bring_back(self._world.redis)
        return f"{REDIS_AWAY_SECONDS} s"

    async def restart_postgres(self, number: signal.Signals) -> str | None:
        server = self._world.postgres
        server.process.send_signal(number)

        async def ended() -> bool:
            return server.process.poll() is not None

        await until(ended, EXIT_SECONDS)
        await self._world.bring_back(server)
        return number.name

    async def terminate_sessions(self, _: float) -> str | None:
        with suppress(*AWAY):
            return f"{len(await self._world.fetch(TERMINATE))} sessions"

    async def cut_links(self, _: float) -> str | None:
        return f"{sum(road.cut() for road in self._world.roads.values())} links"

    async def black_hole(self, draw: float) -> str | None:
        """One road swallows everything for a second, and then goes on where it was."""
        name = sorted(self._world.roads)[int(draw * len(self._world.roads))]
        self._world.roads[name].hold()
        await asyncio.sleep(1)
        self._world.roads[name].let_pass()
        return name

    async def kill_replay(self, draw: float) -> str | None:
        """SIGKILL to the replay command somewhere in its work."""
        if not self.to_replay:
            await self._until_all_dead()
        process = self._replay()
        least, most = REPLAY_KILLED_AFTER_SECONDS
        await asyncio.sleep(least + draw * (most - least))
        if not process.alive():
            return None
        process.kill()
        return str(process.pid)

    async def finish_replay(self) -> None:
        """The same command once more, to its end."""
        if self.to_replay:
            await self._gone(self._replay())

    def _replay(self) -> Process:
        words = ["dead", "replay", "--all", "--reason", "fixed", "--replay-id", REPLAY_ID, "--rate", "40/s", "--yes"]
        return self._world.stack.start(*words)

    async def _until_all_dead(self) -> None:
        async def nothing_open() -> bool:
            return not await self._world.fetch(OPEN)

        await until(nothing_open, 30)
        self.to_replay = frozenset(row["job_id"] for row in await self._world.fetch(DEAD))

    async def _gone(self, process: Process) -> None:
        async def ended() -> bool:
            return not process.alive()

        if not await until(ended, EXIT_SECONDS) or process.popen.returncode != 0:
            self.findings.append(Finding("exit", "", f"{process.name} {process.pid}: {process.popen.returncode}"))

    async def _holder(self, draw: float) -> tuple[int, str, int] | None:
        """The pid of a worker that holds a lease, with one job and its attempt; none when none does for long."""
        found: list[asyncpg.Record] = []

        async def some() -> bool:
            found[:] = [row for row in await self._world.fetch(HOLDERS) if is_running(row["pid"])]
            return bool(found)

        if not await until(some, HIT_SECONDS):
            return None
        row = found[int(draw * len(found))]
        return row["pid"], row["job_id"], row["attempt"]

    def _supervisor_of(self, pid: int) -> Process:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return next(one for one in self._world.workers if one.pid == parent)

    def _note(self, fired: Fired) -> None:
        self.fired.append(fired)
        self._file.write(f"{fired.at:.6f} {fired.healed_at:.6f} {fired.fault}: {fired.hit}\n")


async def _within(trap: Awaitable[str]) -> str | None:
    try:
        return await asyncio.wait_for(trap, HIT_SECONDS)
    except TimeoutError:
        return None
