"""Real `outlast` processes for a test: start, wait for what they say or do, kill, look at what they wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Self, TypeVar
from urllib.request import urlopen

from pydantic import SecretStr

from app.settings import Settings
from workers.dev.embedded import free_port
from workers.dev.guard import spawn

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
POLL_SECONDS = 0.02
LOG_TAIL_CHARS = 4_000


def wait_until(condition: Callable[[], T], seconds: float = 15, *, what: str = "the condition") -> T:
    """Calls `condition` until it gives something true, and returns that. Raises `TimeoutError` naming `what`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come true within {seconds} s")
        time.sleep(POLL_SECONDS)
    return value


@dataclass(eq=False)
class Process:
    """One process of a stack. Its stdout and stderr go to two files."""

    name: str
    popen: subprocess.Popen[bytes]
    stdout_path: Path
    stderr_path: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def stdout(self) -> str:
        return self.stdout_path.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return self.stderr_path.read_text(errors="replace")

    def alive(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to this process alone, and waits until it is gone."""
        self.popen.kill()
        self.popen.wait(10)

    def stop(self, seconds: float = 30) -> int:
        """SIGTERM, then its exit code."""
        self.popen.terminate()
        return self.wait(seconds)

    def wait(self, seconds: float = 30) -> int:
        """The exit code. Raises `AssertionError` with the end of its log when it does not end in time."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end: {self.log_tail()}") from None

    def wait_for_output(self, text: str, seconds: float = 30) -> None:
        """Waits until `text` is in its stdout or stderr. Raises `AssertionError` when it ends before, or in time."""

        def written() -> bool:
            if text in self.stdout or text in self.stderr:
                return True
            if not self.alive():
                raise AssertionError(f"{self.name} ended with {self.popen.returncode}: {self.log_tail()}")
            return False

        try:
            wait_until(written, seconds)
        except TimeoutError:
            raise AssertionError(f"{self.name} did not say {text!r}: {self.log_tail()}") from None

    def log_tail(self) -> str:
        return f"{self.stdout[-LOG_TAIL_CHARS:]}\n{self.stderr[-LOG_TAIL_CHARS:]}"


class Stack:
    """The processes of one test, on the servers of its settings, of the code in `root`.

    `handlers` are modules of test handlers.
    """

    def __init__(self, settings: Settings, logs: Path, root: Path = ROOT) -> None:
        self.settings = settings
        self.root = root
        self.logs = logs
        self.processes: list[Process] = []
        self.api_url = ""
        logs.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, *words: str, name: str = "", env: Mapping[str, str] | None = None) -> Process:
        """Starts `outlast WORDS` and returns at once."""
        name = name or words[0]
        stem = f"{len(self.processes):02d}-{name}"
        stdout_path, stderr_path = self.logs / f"{stem}.out", self.logs / f"{stem}.err"
        with stdout_path.open("wb") as out, stderr_path.open("wb") as err:
            popen = spawn(
                command(*words), signal.SIGKILL, cwd=self.root, env=self.environment(env), stdout=out, stderr=err
            )
        process = Process(name, popen, stdout_path, stderr_path)
        self.processes.append(process)
        return process

    def api(self, *, env: Mapping[str, str] | None = None) -> Process:
        """Starts the API on a free port and waits until it answers; `api_url` is its address."""
        port = free_port()
        self.api_url = f"http://127.0.0.1:{port}"
        process = self.start("api", "--port", str(port), env=env)
        wait_until(lambda: self._answers(process), 120, what="the API")
        return process

    def relay(self, *, env: Mapping[str, str] | None = None) -> Process:
        return self.start("relay", env=env)

    def worker(self, handlers: Sequence[str], *, processes: int = 1, env: Mapping[str, str] | None = None) -> Process:
        """Starts a worker's supervisor with handlers of these modules."""
        modules = [word for module in handlers for word in ("--handlers", module)]
        return self.start("worker", "--processes", str(processes), *modules, env=env)

    def run(
        self, *words: str, stdin: str = "", seconds: float = 60, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs an operator command to its end."""
        return subprocess.run(
            command(*words),
            cwd=self.root,
            env=self.environment(env),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What the processes of this stack get: ours, the settings as `OUTLAST_*`, and `more`."""
        api = {"OUTLAST_API_URL": self.api_url} if self.api_url else {}
        return {**os.environ, **as_environment(self.settings), **api, **(more or {})}

    def close(self) -> None:
        """Kills every process that is left, with its children."""
        for process in self.processes:
            descendants = [] if not process.alive() else children(process.pid)
            if process.alive():
                process.popen.kill()
                process.popen.wait(10)
            for pid in descendants:
                _kill(pid)

    def _answers(self, api: Process) -> bool:
        if not api.alive():
            raise AssertionError(f"the API ended with {api.popen.returncode}: {api.log_tail()}")
        try:
            with urlopen(f"{self.api_url}/healthz", timeout=2) as answer:
                return answer.status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False


def command(*words: str) -> list[str]:
    """`outlast WORDS` from this checkout."""
    return [sys.executable, "-m", "workers.main", *words]


def as_environment(settings: Settings) -> dict[str, str]:
    """The settings that were given explicitly, as the environment variables that say the same."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    texts = {n: v.get_secret_value() if isinstance(v, SecretStr) else str(v) for n, v in given.items() if v is not None}
    return {f"OUTLAST_{name.upper()}": text for name, text in texts.items()}


def children(pid: int) -> list[int]:
    """The pids of all descendants of a process, parents first (Linux)."""
    try:
        direct = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return direct + [descendant for child in direct for descendant in children(child)]


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
