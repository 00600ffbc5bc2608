"""Jobs that do, attempt by attempt, what a test tells them, on workers whose leases are short."""

from __future__ import annotations

from typing import Any

from app.transport import keys
from tests.client import Client
from tests.handlers import told
from tests.processes import Process, wait_until
from tests.scenarios.premises import STREAM, Premises

HANDLERS = ["tests.handlers.told"]
LEASE_SECONDS = 3.0


class ToldJobs:
    """Each has a name, which its lines in the journal carry."""

    def __init__(self, premises: Premises) -> None:
        self.premises = premises
        self.client: Client = premises.client
        premises.stop_workers()

    def worker(self, **env: str) -> Process:
        """One that knows these jobs; `env` are settings, as `BLOCK_SECONDS="5"`."""
        env = {"LEASE_SECONDS": str(LEASE_SECONDS), "SUSPECT_SECONDS": "1.5", "SHUTDOWN_SECONDS": "10"} | env
        return self.premises.worker(HANDLERS, **env)

    def submit(self, name: str, *, kind: str = "told.job", **fields: Any) -> str:
        return self.client.submit(kind, {"journal": str(self.premises.journal_path), "name": name}, **fields)

    def tell(self, name: str, attempt: int, words: str) -> None:
        told.tell(self.premises.journal_path, name, attempt, words)

    def go(self, name: str, attempt: int) -> None:
        told.go(self.premises.journal_path, name, attempt)

    def lines(self, verb: str) -> list[tuple[str, int]]:
        """Name and attempt of each such line, in order."""
        return [(line[0], int(line[1])) for line in self.premises.journal.lines(verb)]

    def until_started(self, *names: str, attempt: int = 1, seconds: float = 60) -> None:
        wanted = {(name, attempt) for name in names}
        wait_until(lambda: wanted <= set(self.lines("start")), seconds, what=f"attempt {attempt} of {', '.join(names)}")

    def until_said(self, verb: str, name: str, attempt: int = 1, seconds: float = 60) -> None:
        wait_until(lambda: (name, attempt) in self.lines(verb), seconds, what=f"{verb} of attempt {attempt} of {name}")

    def until_published(self, *job_ids: str, seconds: float = 30) -> None:
        """Waits until each of these has an entry in the stream."""
        wait_until(lambda: self._published(set(job_ids)), seconds, what="the entries in the stream")

    def in_hand(self) -> dict[str, str]:
        """The entries that were delivered and are not acknowledged, and the consumer that has each."""
        listed = self.premises.broker("XPENDING", STREAM, keys.GROUP, "-", "+", 10_000)
        return {str(entry): str(consumer) for entry, consumer, *_ in listed}

    def _published(self, job_ids: set[str]) -> bool:
        text = str(self.premises.broker("XRANGE", STREAM, "-", "+"))
        return all(job_id in text for job_id in job_ids)

    def until_empty(self, seconds: float = 60) -> None:
        """Waits until the stream has no entry and nobody has one in hand."""
        premises = self.premises
        wait_until(lambda: premises.length() == premises.pending() == 0, seconds, what="an empty stream")

    def pid_of(self, name: str, attempt: int = 1) -> int:
        """The process that an attempt started in."""
        [pid] = [int(line[2]) for line in self.premises.journal.lines("start") if line[:2] == [name, str(attempt)]]
        return pid
