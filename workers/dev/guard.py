"""Children that do not outlive the process that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def dies_with_parent(death_signal: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn`: the child is sent `death_signal` when its parent ends, by SIGKILL too.

    Linux only; elsewhere it does nothing. The kernel fires when the *thread* that forked ends, so fork from the main
    thread. A parent that died before the child could ask is noticed by the child's new parent.
    """
    parent = os.getpid()

    def ask() -> None:
        if _LIBC is None:
            return
        _LIBC.prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return ask
