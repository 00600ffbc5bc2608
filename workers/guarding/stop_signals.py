"""SIGTERM and SIGINT of a worker process: never lost at its start, and never left to a handler.

However often they come they mean one thing, stop taking jobs and let those that run finish: whoever stops a service
may signal each of its processes, beside the supervisor that passes the signal on. To hurry is a word of its own.

A process that is told to stop while it still starts must not die of it: that would look like a crash. So its parent
starts it with both blocked, and it lets them in once somebody listens. A handler may put its own in place of ours; it
is put right again at the next heartbeat, or nothing would ever drain this process.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.telemetry import log

STOPPING = (signal.SIGTERM, signal.SIGINT)
HURRYING = signal.SIGUSR1
OURS = (*STOPPING, HURRYING)


@contextmanager
def blocked() -> Iterator[None]:
    """A process started inside gets the signals once it unblocks them, and not before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OURS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class StopSignals:
    """Calls `on_stop` and `on_hurry` on the event loop, for each signal. Made and used in the main thread."""

    def __init__(self, on_stop: Callable[[], None], on_hurry: Callable[[], None]) -> None:
        self._calls = {**dict.fromkeys(STOPPING, on_stop), HURRYING: on_hurry}
        self._ours: object = None

    def obey(self) -> None:
        """Listens from now on, also to what came before."""
        self._listen()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OURS)

    def keep(self) -> None:
        """Puts right what a handler changed."""
        if any(signal.getsignal(number) != self._ours for number in OURS):
            log.warning("signal_handlers_changed")
            self._listen()

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number, call in self._calls.items():
            loop.add_signal_handler(number, call)
        self._ours = signal.getsignal(signal.SIGTERM)
