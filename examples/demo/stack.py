"""The processes of the demonstration: `outlast dev` with two workers, and the help desk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from examples.demo.failures import DemoFailed
from workers.dev.guard import spawn

ROOT = Path(__file__).parents[2]
WORKERS = 2
HANDLERS = "workers.handlers.ticket_triage"
READY = "ready "
READY_SECONDS = 90.0
STOP_SECONDS = 60.0
COMMAND_SECONDS = 60.0
POLL_SECONDS = 0.05
LOG_TAIL_CHARS = 2_000
# Where servers' binaries are found may be set from outside; everything else is the demonstration's own.
KEPT = ("OUTLAST_POSTGRES_BIN", "OUTLAST_REDIS_BIN")


class Stack:
    """Starts on entry, stops on exit. `folder` holds everything: data, logs, pids."""

    def __init__(self, folder: Path, script_file: Path) -> None:
        self.folder = folder
        self.api_url = ""
        self.desk_url = ""
        self._data = folder / "data"
        self._environment = {name: value for name, value in os.environ.items() if ours(name)}
        self._environment["OUTLAST_TRIAGE_SCRIPT"] = str(script_file)
        self._running: list[Daemon] = []

    def __enter__(self) -> Self:
        try:
            self.desk_url = self._start("desk", [sys.executable, "-m", "examples.sink", "--port", "0"])
            self._environment["OUTLAST_SINK_URL"] = self.desk_url
            self.api_url = self._start("dev", outlast(*self._dev_words()))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs an operator's command on this stack: `outlast WORDS`."""
        return subprocess.run(
            outlast(*words),
            cwd=ROOT,
            env=self._environment | exports(self._data / "env"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def pids(self) -> dict[str, int]:
        """The pid of every process `outlast dev` has started, by name (`worker-1`: a supervisor)."""
        return {file.stem: int(file.read_text()) for file in sorted((self._data / "pids").glob("*.pid"))}

    def stop(self) -> dict[str, int]:
        """Stops what runs, the last started first; exit codes by name. Does nothing the second time."""
        codes = {daemon.name: daemon.stop() for daemon in reversed(self._running)}
        self._running.clear()
        return codes

    def _start(self, name: str, words: Sequence[str]) -> str:
        daemon = Daemon(name, words, self.folder, self._environment)
        self._running.append(daemon)
        return daemon.address()

    def _dev_words(self) -> list[str]:
        return ["dev", "--port", "0", "--data", str(self._data), "--workers", str(WORKERS), "--handlers", HANDLERS]


class Daemon:
    """A process that prints `ready URL` once it can be used."""

    def __init__(self, name: str, words: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self._output = folder / f"{name}.out"
        self._log = folder / f"{name}.log"
        with self._output.open("wb") as output, self._log.open("wb") as log:
            # In a session of its own: Ctrl-C reaches the demonstration alone, which then stops the others in order.
            self._process = spawn(words, signal.SIGTERM, cwd=ROOT, env=environment, stdout=output, stderr=log)

    def address(self) -> str:
        """The URL it prints. Raises `DemoFailed` when it ends before, or takes too long."""
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            for line in self._output.read_text().splitlines(keepends=True):
                if line.startswith(READY) and line.endswith("\n"):
                    return line.removeprefix(READY).strip()
            if self._process.poll() is not None:
                raise DemoFailed(f"{self.name} ended with {self._process.returncode}:\n{self._log_tail()}")
            time.sleep(POLL_SECONDS)
        raise DemoFailed(f"{self.name} was not ready within {READY_SECONDS:.0f} s:\n{self._log_tail()}")

    def stop(self) -> int:
        """SIGTERM, and its exit code; SIGKILL when that does not help."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(STOP_SECONDS)
        self._process.kill()
        return self._process.wait()

    def _log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]


def outlast(*words: str) -> list[str]:
    return [sys.executable, "-m", "workers.main", *words]


def ours(name: str) -> bool:
    return name in KEPT or not name.startswith("OUTLAST_")


def exports(env_file: Path) -> dict[str, str]:
    """What `. DIR/env` would set, as a shell reads it."""
    shell = subprocess.run(
        ["sh", "-c", '. "$0" && env -0', str(env_file)],
        env={},
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=True,
    )
    pairs = (entry.partition("=") for entry in shell.stdout.split("\0") if entry.startswith("OUTLAST_"))
    return {name: value for name, _, value in pairs}


def kill(pid: int) -> None:
    """kill -9 of this process alone."""
    os.kill(pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Whether a process exists; one that only waits to be reaped does not count (Linux)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return not Path("/proc").is_dir()
