"""A server as a child process: one owner per folder, gone when its owner is gone, back on the same address.

Two things a server's own pid file does not give:

*One server per folder.* Redis starts twice on one append-only file and mixes the data. Here a file lock guards the
folder, and its descriptor is handed to the server, so the lock lives exactly as long as the server does, also when the
owner is killed.

*No orphans.* On Linux the kernel signals the server when its owner ends. Elsewhere the next owner of the folder finds
the lock held, sees that the recorded owner is gone and stops the orphan; the held lock proves the pid is still its own.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar, Self

from workers.dev.failures import ServerFailed
from workers.dev.guard import spawn

POLL_SECONDS = 0.01
LOCK_SECONDS = 20.0
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
LOG_TAIL_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a server: its command, and as whom it runs."""

    argv: Sequence[str | Path]
    cwd: Path = Path("/")
    env: Mapping[str, str] | None = None
    user: int | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens and its password; kept in the folder, so a restart changes neither."""

    port: int
    password: str

    def free(self) -> bool:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError:
                return False
        return True


@dataclass(eq=False)
class Server(ABC):
    """One embedded server in `root/<name>`. `durable=False` trades crash safety for speed (tests)."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]
    orphan_signal: ClassVar[signal.Signals]

    root: Path
    durable: bool = True
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _lock: IO[str] | None = field(default=None, init=False)
    _address: Address | None = field(default=None, init=False)

    @abstractmethod
    def prepare(self) -> None:
        """Makes the data folder when there is none; the address is known. Raises `ServerFailed`."""

    @abstractmethod
    def launch(self, address: Address) -> Launch:
        """The command that serves the data folder on `address`."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether this very process accepts connections."""

    @property
    @abstractmethod
    def url(self) -> str:
        """What clients connect to."""

    @property
    def folder(self) -> Path:
        return self.root.resolve() / self.name

    @property
    def log_path(self) -> Path:
        return self.folder / "server.log"

    @property
    def address(self) -> Address:
        if self._address is None:
            raise ServerFailed(f"{self.name} was not started")
        return self._address

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerFailed(f"{self.name} was not started")
        return self._process

    def start(self) -> Self:
        """Takes the folder, starts the server, waits until it accepts connections.

        Call from the main thread (`guard.spawn`). Raises `ServerFailed`.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_folder()
        try:
            self._address = self._choose_address()
            self.prepare()
            self.spawn()
            if not _wait(self._started, READY_SECONDS):
                raise ServerFailed(f"{self.name} is not ready after {READY_SECONDS:.0f} s: {self.log_tail()}")
        except BaseException:
            self.stop()
            raise
        return self

    def spawn(self) -> subprocess.Popen[bytes]:
        """Starts the server process on its address, without waiting; also after it died."""
        assert self._lock is not None
        launch = self.launch(self.address)
        with self.log_path.open("ab") as log:
            self._process = spawn(
                launch.argv,
                self.orphan_signal,
                cwd=launch.cwd,
                env=launch.env,
                user=launch.user,
                stdout=log,
                stderr=log,
                pass_fds=(self._lock.fileno(),),
            )
        self._write("state.json", json.dumps({"owner": os.getpid(), "server": self._process.pid}))
        return self._process

    def stop(self) -> None:
        """Stops the server and gives the folder back; kills it when it does not stop in 20 s."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(self.stop_signal)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._lock:
            self._lock.close()
            self._lock = None

    def serves(self, url: str) -> bool:
        """Whether `url` is the address that this folder had the last time."""
        if self._address is None:
            self._address = self._kept_address()
        return self._address is not None and self.url == url

    def log_tail(self) -> str:
        """The last lines the server wrote."""
        try:
            return self.log_path.read_text(errors="replace")[-LOG_TAIL_CHARS:]
        except FileNotFoundError:
            return ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _started(self) -> bool:
        if self.process.poll() is not None:
            raise ServerFailed(f"{self.name} ended with {self.process.returncode}: {self.log_tail()}")
        return self.is_ready()

    def _take_folder(self) -> None:
        self._lock = (self.folder / ".lock").open("a+")
        if not _wait(self._try_lock, LOCK_SECONDS):
            self._lock.close()
            self._lock = None
            raise ServerFailed(f"{self.folder} is in use by another process")

    def _try_lock(self) -> bool:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stop_orphan()
            return False
        return True

    def _stop_orphan(self) -> None:
        state = self._read_state()
        if state is None or _alive(state["owner"]):
            return
        try:
            os.kill(state["server"], self.orphan_signal)
        except (ProcessLookupError, PermissionError):
            return

    def _read_state(self) -> dict[str, int] | None:
        try:
            state = json.loads((self.folder / "state.json").read_text())
            return {"owner": int(state["owner"]), "server": int(state["server"])}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _choose_address(self) -> Address:
        """The address of the last time, or a new port when somebody else has taken it."""
        address = self._kept_address() or Address(free_port(), secrets.token_urlsafe(18))
        if not address.free():
            address = Address(free_port(), address.password)
        self._write("address.json", json.dumps({"port": address.port, "password": address.password}))
        return address

    def _kept_address(self) -> Address | None:
        try:
            kept = json.loads((self.folder / "address.json").read_text())
            return Address(int(kept["port"]), str(kept["password"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, name: str, text: str) -> None:
        """Replaces a private file of the folder in one step."""
        fresh = self.folder / f"{name}.new"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        fresh.replace(self.folder / name)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_taken(port: int) -> bool:
    """Whether a server listens on this TCP port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_SECONDS)
    return True
