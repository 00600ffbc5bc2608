"""The folder of one `outlast dev`: one owner, `env`, `pids/`, `logs/` and the servers' folders."""

from __future__ import annotations

import fcntl
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workers.dev.failures import DevFailed

OWNER_WAIT_SECONDS = 5.0
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below `root`."""

    root: Path

    @property
    def env(self) -> Path:
        """Shell `export` lines for clients of this stack."""
        return self.root / "env"

    @property
    def pids(self) -> Path:
        return self.root / "pids"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def log_of(self, name: str) -> Path:
        """The log of the process `name`, such as `worker-1`."""
        return self.logs / f"{name}.log"

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Makes the folder and keeps other owners out. Raises `DevFailed` when it has one."""
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (self.pids, self.logs):
            folder.mkdir(exist_ok=True)
        with (self.root / ".owner").open("a+") as lock:
            self._lock(lock.fileno())
            self.env.unlink(missing_ok=True)
            self._forget_pids()
            try:
                yield
            finally:
                self._forget_pids()

    def write_env(self, variables: Mapping[str, str]) -> None:
        """Writes `env` in one step; it holds passwords, so only its owner may read it."""
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
        fresh = self.root / ".env.new"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(lines)
        fresh.replace(self.env)

    def write_pid(self, name: str, pid: int) -> None:
        """Replaces `pids/<name>.pid` in one step."""
        fresh = self.pids / f".{name}.new"
        fresh.write_text(f"{pid}\n")
        fresh.replace(self.pids / f"{name}.pid")

    def _forget_pids(self) -> None:
        for pid in self.pids.glob("*.pid"):
            pid.unlink()

    def _lock(self, descriptor: int) -> None:
        end = time.monotonic() + OWNER_WAIT_SECONDS
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise DevFailed(f"another `outlast dev` is running in {self.root}") from None
            time.sleep(POLL_SECONDS)
