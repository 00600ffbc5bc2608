"""How soon a job runs again after its worker died, froze, or died with its supervisor, at default settings.

`python -m bench.recovery [--kills N] [--hosts N] [--freezes N]` starts stacks of its own with two workers, lets a job
perform two effects and then wait, takes its process away, and prints seconds from the signal to the second start, by
the database's clock. Exit 1 when a recorded effect was performed again or the audit finds anything.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from app.settings import Settings
from app.store.database import Database
from app.store.fleet import Fleet
from bench.stack import BenchStack, audit, running

POLL_SECONDS = 0.02
WAIT_SECONDS = 60


def until(what: str, condition: Callable[[], Any]) -> Any:
    """The first true value of `condition`. Raises `TimeoutError`."""
    end = time.monotonic() + WAIT_SECONDS
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(POLL_SECONDS)
    return value


async def workers_heard(settings: Settings) -> int:
    """How many worker processes the fleet hears now."""
    db = await Database.open(settings, "bench", size_max=1)
    try:
        return sum(one.role == "worker" for one in await Fleet(db).live(2 * settings.heartbeat_seconds))
    finally:
        await db.close()


def parent_of(pid: int) -> int:
    """The parent process (Linux)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_process(pid: int) -> Sequence[int]:
    os.kill(pid, signal.SIGKILL)
    return ()


def kill_with_supervisor(pid: int) -> Sequence[int]:
    for victim in (parent_of(pid), pid):
        os.kill(victim, signal.SIGKILL)
    return ()


def freeze(pid: int) -> Sequence[int]:
    os.kill(pid, signal.SIGSTOP)
    return (pid,)


class Sampler:
    """Takes workers away from jobs of one stack."""

    def __init__(self, stack: BenchStack) -> None:
        self._http = httpx.Client(base_url=stack.url, timeout=30)
        self._settings = stack.settings
        self.repeated = 0

    def sample(self, take_away: Callable[[int], Sequence[int]]) -> float:
        """Seconds from the signal to the second start."""
        self._until_two_workers()
        job_id = self._http.post("/v1/jobs", json={"kind": "bench.hold", "input": {"n": 0, "text": ""}}).json()["id"]
        until("two effects on record", lambda: self._recorded(job_id) == 2)
        pid = self._attempts(job_id)[0]["worker"]["pid"]
        at = time.time()
        frozen = take_away(pid)
        second = until("a second start", lambda: self._started(job_id, 2))
        job = until("the end", lambda: self._done(job_id))
        for victim in frozen:
            os.kill(victim, signal.SIGCONT)
        effects = self._http.get(f"/v1/jobs/{job_id}/effects").json()["data"]
        self.repeated += sum(effect["calls"] > 1 for effect in effects)
        assert job["attempt"] == 2, job
        return second - at

    def _until_two_workers(self) -> None:
        until("two workers", lambda: asyncio.run(workers_heard(self._settings)) >= 2)

    def _attempts(self, job_id: str) -> list[dict[str, Any]]:
        return self._http.get(f"/v1/jobs/{job_id}/timeline").json()["attempts"]

    def _started(self, job_id: str, attempt: int) -> float | None:
        for one in self._attempts(job_id):
            if one["attempt"] == attempt:
                return datetime.fromisoformat(one["started_at"]).timestamp()
        return None

    def _recorded(self, job_id: str) -> int:
        effects = self._http.get(f"/v1/jobs/{job_id}/effects").json()["data"]
        return sum(effect["state"] == "recorded" for effect in effects)

    def _done(self, job_id: str) -> dict[str, Any] | None:
        job = self._http.get(f"/v1/jobs/{job_id}").json()
        return job if job["state"] == "done" else None


def report(what: str, seconds: list[float]) -> None:
    worst, middle = max(seconds), statistics.median(seconds)
    print(f"{what:<42} n={len(seconds):<4} p50 {middle:6.3f} s   worst {worst:6.3f} s", flush=True)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=10)
    arguments.add_argument("--hosts", type=int, default=2)
    arguments.add_argument("--freezes", type=int, default=1)
    given = arguments.parse_args()
    with running(os.environ, workers=2, handlers="bench.handlers") as stack:
        sampler = Sampler(stack)
        report("worker process killed", [sampler.sample(kill_process) for _ in range(given.kills)])
        report(
            "process and supervisor killed together", [sampler.sample(kill_with_supervisor) for _ in range(given.hosts)]
        )
        report("worker process frozen", [sampler.sample(freeze) for _ in range(given.freezes)])
        print(f"recorded effects performed again: {sampler.repeated}")
        return 1 if audit(stack) or sampler.repeated else 0


if __name__ == "__main__":
    sys.exit(main())
