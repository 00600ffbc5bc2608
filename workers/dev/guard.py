"""Children that do not outlive the process that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1

# Loaded before any fork: the child only calls it.
_LIBC = ctypes.CDLL(None)


def spawn(
    argv: Sequence[str | Path],
    death_signal: signal.Signals,
    *,
    stdout: IO[bytes],
    stderr: IO[bytes],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    user: int | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own that is sent `death_signal` when this one ends, by SIGKILL too.

    `user` is a user and group id to become. The signal is Linux only. The kernel fires it when the *thread* that
    forked ends: call from the main thread.
    """
    return subprocess.Popen(
        [str(word) for word in argv],
        cwd=cwd,
        env=env,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        pass_fds=pass_fds,
        preexec_fn=_dies_with_parent(death_signal),  # noqa: PLW1509  # forks from the main thread; makes two system calls
    )


def _dies_with_parent(death_signal: signal.Signals) -> Callable[[], None]:
    parent = os.getpid()

    def ask() -> None:
        if sys.platform != "linux":
            return
        _LIBC.prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # it died before we could ask
            os._exit(1)

    return ask
