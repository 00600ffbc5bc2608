"""Embedded PostgreSQL, as root too."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from workers.dev.binaries import postgres_bin_dir
from workers.dev.embedded import Address, Launch, Server
from workers.dev.failures import ServerFailed

NOBODY = 65534
USER = "outlast"
LOCALE = "C.UTF-8" if sys.platform == "linux" else "C"

OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "logging_collector": "off",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # A killed server syncs its folder before it comes back: in one call, and not file by file.
    **({"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}),
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

# Words of `postmaster.pid`: PM_STATUS is line 8 (PostgreSQL, src/include/utils/pidfile.h).
PID_LINE, STATUS_LINE = 0, 7


@dataclass(frozen=True, slots=True)
class RunAs:
    """How to run a program that refuses root: a prefix for its command, or a user to become."""

    prefix: Sequence[str] = ()
    user: int | None = None


class Postgres(Server):
    """PostgreSQL on 127.0.0.1 with SCRAM and a random password; the database is `postgres`."""

    name: ClassVar[str] = "postgres"
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # fast: sessions are ended, nothing to recover
    orphan_signal: ClassVar[signal.Signals] = signal.SIGQUIT  # at once: the owner was killed, recover at the next start

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{self.address.password}@127.0.0.1:{self.address.port}/postgres"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def prepare(self) -> None:
        if not (self.data / "PG_VERSION").exists():
            self._initdb()
        made_by, ours = (self.data / "PG_VERSION").read_text().strip(), self._major_version()
        if made_by != ours:
            raise ServerFailed(
                f"{self.data} was made by PostgreSQL {made_by} and the binaries are {ours}: upgrade it with "
                "pg_upgrade, point OUTLAST_POSTGRES_BIN at the old binaries, or delete the folder"
            )

    def launch(self, address: Address) -> Launch:
        options = {**OPTIONS, **({} if self.durable else NOT_DURABLE), "port": str(address.port)}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        run_as = self._run_as
        return Launch(
            [*run_as.prefix, self._program("postgres"), "-D", self.data, *words],
            env=_environment(),
            user=run_as.user,
        )

    def is_ready(self) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return int(lines[PID_LINE]) == self.process.pid and lines[STATUS_LINE].strip() == "ready"
        except (OSError, IndexError, ValueError):
            return False

    def _initdb(self) -> None:
        """Makes the cluster in a folder of its own and moves it in place, so a killed initdb leaves no half of one."""
        shutil.rmtree(self.data, ignore_errors=True)
        fresh, secret, run_as = self.folder / "initdb", self.folder / "initdb.password", self._run_as
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._write(secret.name, self.address.password)
        if run_as.user is not None:
            for path in (fresh, secret):
                os.chown(path, run_as.user, run_as.user)
        options = ["-U", USER, "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--locale", LOCALE, "--no-sync"]
        try:
            self._run([self._program("initdb"), "-D", fresh, *options])
        finally:
            secret.unlink(missing_ok=True)
        if self.durable:
            self._run([self._program("initdb"), "-D", fresh, "--sync-only"])
        fresh.rename(self.data)

    def _major_version(self) -> str:
        return self._run([self._program("postgres"), "--version"]).split()[2].split(".")[0]

    def _program(self, name: str) -> Path:
        return postgres_bin_dir() / name

    def _run(self, argv: Sequence[str | Path]) -> str:
        run_as = self._run_as
        done = _call([*run_as.prefix, *argv], user=run_as.user)
        if done.returncode:
            raise ServerFailed(f"{argv[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    @cached_property
    def _run_as(self) -> RunAs:
        """As root, a one-id user namespace (no chown, works below /root), else an unprivileged user."""
        if os.geteuid() != 0:
            return RunAs()
        probe = [self._program("postgres"), "--version"]
        namespace = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
        if shutil.which("unshare") and _call([*namespace, *probe]).returncode == 0:
            return RunAs(prefix=namespace)
        try:
            if _call(probe, user=NOBODY).returncode == 0:
                return RunAs(user=NOBODY)
        except PermissionError:
            pass
        raise ServerFailed(
            f"running as root, and user {NOBODY} cannot execute {probe[0]}: move the checkout out of a private "
            "folder, run as an ordinary user, or set OUTLAST_DATABASE_URL"
        )


def _call(argv: Sequence[str | Path], *, user: int | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in argv],
        cwd="/",
        env=_environment(),
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _environment() -> Mapping[str, str]:
    """Ours without what would steer PostgreSQL's own programs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": LOCALE}
