"""`outlast dev` as a test runs it: started as a user would, looked at from outside."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from tests.processes import ROOT, Process, is_running, wait_until
from workers.dev.guard import spawn

READY = re.compile(r"ready (http://127\.0\.0\.1:\d+)\n")
SHORT_CLOCKS = {
    "OUTLAST_LEASE_SECONDS": "2",
    "OUTLAST_SUSPECT_SECONDS": "0.8",
    "OUTLAST_HEARTBEAT_SECONDS": "0.2",
    "OUTLAST_SWEEP_SECONDS": "0.05",
    "OUTLAST_REPUBLISH_SECONDS": "1",
    "OUTLAST_BACKOFF_BASE_SECONDS": "0.1",
    "OUTLAST_BACKOFF_CAP_SECONDS": "1",
    "OUTLAST_SHUTDOWN_SECONDS": "5",
}


@dataclass(eq=False)
class DevStack:
    """A running `outlast dev` and its folder."""

    process: Process
    data: Path

    @classmethod
    def start(
        cls,
        data: Path,
        logs: Path,
        *,
        handlers: Sequence[str] = ("tests.handlers.arithmetic",),
        workers: int = 1,
        env: Mapping[str, str] | None = None,
        argv: Sequence[str | Path] = (sys.executable, "-m", "workers.main"),
        cwd: Path = ROOT,
        user: int | None = None,
    ) -> Self:
        """Starts it and returns at once."""
        modules = [word for module in handlers for word in ("--handlers", module)]
        words = ["dev", "--port", "0", "--data", str(data), "--workers", str(workers), *modules]
        logs.mkdir(parents=True, exist_ok=True)
        out, err = logs / "dev.out", logs / "dev.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            popen = spawn(
                [*argv, *words],
                signal.SIGKILL,
                cwd=cwd,
                env={**os.environ, **SHORT_CLOCKS, **(env or {})},
                stdout=stdout,
                stderr=stderr,
                user=user,
            )
        return cls(Process("dev", popen, out, err), data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.alive():
            self.process.kill()

    @property
    def url(self) -> str:
        """Waits for the ready line and gives its address. Raises `AssertionError` when it ends before."""
        wait_until(lambda: "\n" in self.process.stdout or not self.process.alive(), 60, what="the ready line")
        found = READY.fullmatch(self.process.stdout)
        assert found, self.process.log_tail()
        return found[1]

    @property
    def pids(self) -> dict[str, int]:
        """The pid of each process it says it started, by role and number."""
        return {path.stem: int(path.read_text()) for path in (self.data / "pids").glob("*.pid")}

    @property
    def env(self) -> dict[str, str]:
        """What a shell has after reading `DIR/env`."""
        script = f". {shlex.quote(str(self.data / 'env'))} && env"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env={})
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("OUTLAST_"))

    def kill(self, name: str) -> None:
        """SIGKILL to one of its processes, and waits until another stands in its place."""
        before = self.pids[name]
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.pids[name] != before, what=f"another {name}")

    def submit(self, kind: str, value: Any) -> str:
        """Submits a job, again while the API or PostgreSQL is away; the key makes it one. Its id."""
        key = os.urandom(8).hex()

        def accepted() -> str | None:
            try:
                answer = httpx.post(
                    f"{self.url}/v1/jobs",
                    json={"kind": kind, "input": value},
                    headers={"Idempotency-Key": key},
                    timeout=5,
                )
            except httpx.TransportError:
                return None
            return answer.json()["id"] if answer.is_success else None

        return wait_until(accepted, 30, what="a submit") or ""

    def finished(self, job_id: str) -> Mapping[str, Any]:
        """The job once it is done."""

        def done() -> Mapping[str, Any] | None:
            try:
                answer = httpx.get(f"{self.url}/v1/jobs/{job_id}", timeout=5)
            except httpx.TransportError:
                return None
            return answer.json() if answer.is_success and answer.json()["state"] == "done" else None

        return wait_until(done, 30, what=f"the end of job {job_id}") or {}

    def wait_for_nothing_left(self, pids: Sequence[int]) -> None:
        """Waits until no process of these is left."""
        wait_until(lambda: not any(is_running(pid) for pid in pids), 10, what="the end of every process")
