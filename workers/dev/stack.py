"""The processes of `outlast dev`: started together, tended until told to stop, stopped in order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import workers
from app.cli.exits import say
from app.settings import Settings
from workers.dev.failures import RoleFailed
from workers.dev.guard import spawn
from workers.dev.layout import Layout
from workers.dev.member import Member
from workers.dev.readiness import Readiness
from workers.dev.servers import Servers

READY_SECONDS = 60.0
READY_POLL_SECONDS = 0.05
DEATHS_BEFORE_READY_MAX = 3
STOP_GRACE_SECONDS = 10.0
PACKAGES = str(Path(workers.__file__).parents[1])


class DevStack:
    """The servers' processes, one API, one relay and some worker supervisors, each kept alive."""

    def __init__(self, settings: Settings, layout: Layout, servers: Servers, *, port: int, supervisors: int) -> None:
        self._shutdown_seconds = settings.shutdown_seconds
        self._layout = layout
        self._readiness = Readiness(settings, f"http://127.0.0.1:{port}", supervisors)
        self._servers = {server: Member(f"{server.name}-1", server.spawn, layout) for server in servers.embedded}
        commands = {"api-1": ["api", "--host", "127.0.0.1", "--port", str(port)], "relay-1": ["relay"]}
        commands |= {f"worker-{n}": ["worker", "--processes", "1"] for n in range(1, supervisors + 1)}
        self._roles = [Member(name, partial(self._spawn, name, words), layout) for name, words in commands.items()]
        self._changed = asyncio.Event()
        self._stops_asked = 0

    async def run(self, announce: Callable[[], None]) -> None:
        """Everything from the first process to the last; calls `announce` once all is ready.

        Raises `RoleFailed` when it does not become ready, `DatabaseAway`.
        """
        self._listen()
        try:
            await self._readiness.open()
            self._launch()
            await self._until_ready()
            if not self._stops_asked:
                announce()
            while not self._stops_asked:
                await self._nap(self._tend())
        finally:
            await self._stop()
            await self._readiness.close()

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._changed.set)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._ask_to_stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored: started with nohup
            loop.add_signal_handler(signal.SIGHUP, self._ask_to_stop)

    def _ask_to_stop(self) -> None:
        self._stops_asked += 1
        self._changed.set()

    def _launch(self) -> None:
        now = time.monotonic()
        for server, member in self._servers.items():
            member.adopt(server.process, now)
        for role in self._roles:
            role.launch(now)

    async def _until_ready(self) -> None:
        end = time.monotonic() + READY_SECONDS
        while not self._stops_asked and not await self._readiness.reached():
            self._tend()
            for role in self._roles:
                if role.deaths >= DEATHS_BEFORE_READY_MAX:
                    raise RoleFailed(f"{role.name} ends as often as it is started:\n{role.last_words()}")
            if time.monotonic() > end:
                raise RoleFailed(f"not ready after {READY_SECONDS:.0f} s; the logs are in {self._layout.logs}")
            await self._nap(READY_POLL_SECONDS)

    def _tend(self) -> float | None:
        """Starts again what has died and whose pause is over. The seconds until the next is due, if any is."""
        now = time.monotonic()
        members = [*self._servers.values(), *self._roles]
        for member in members:
            was, ended_with = member.pid, member.ended_with
            if member.tend(now):
                say(f"{member.name} (pid {was}) ended with {ended_with}; started again as pid {member.pid}")
        pauses = [member.due_at - now for member in members if member.due_at is not None]
        return max(0.0, min(pauses)) if pauses else None

    async def _nap(self, seconds: float | None) -> None:
        """Until a process ends or a stop is asked for, or so many seconds."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return
        self._changed.clear()

    async def _stop(self) -> None:
        """Lets the roles end while the servers still run; kills what does not, or all at the second signal."""
        for role in self._roles:
            role.ask_to_stop()
        end = time.monotonic() + self._shutdown_seconds + STOP_GRACE_SECONDS
        while any(role.alive for role in self._roles) and self._stops_asked < 2 and time.monotonic() < end:
            await self._nap(end - time.monotonic())
        for role in self._roles:
            role.kill()

    def _spawn(self, name: str, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Runs `outlast WORDS`. The folder this package is in comes from us, never from a `workers` in the cwd."""
        path = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
        argv = [sys.executable, "-P", "-m", "workers.main", *words]
        with self._layout.log_of(name).open("ab") as log:
            return spawn(argv, signal.SIGKILL, env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log)
