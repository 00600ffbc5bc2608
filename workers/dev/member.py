"""One process of the stack, kept alive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from workers.dev.layout import Layout

PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0
SETTLED_SECONDS = 10.0


def pause_seconds(deaths: int) -> float:
    """How long to wait after that many deaths in a row: the first restart is at once, later ones back off."""
    return 0 if deaths <= 1 else min(PAUSE_FIRST_SECONDS * 2 ** (deaths - 2), PAUSE_MAX_SECONDS)


@dataclass(eq=False)
class Member:
    """A process that is started again when it dies. Its pid stands in the folder of the stack.

    `deaths` counts the ends in a row; a process that lived 10 s starts again from none.
    """

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    layout: Layout
    deaths: int = field(default=0, init=False)
    due_at: float | None = field(default=None, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _started_at: float = field(default=0.0, init=False)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def ended_with(self) -> int | None:
        """The exit code, or minus the signal, of the last process."""
        return self._process.poll() if self._process else None

    def launch(self, now: float) -> None:
        """Starts the process and writes its pid down."""
        self.adopt(self.start(), now)

    def adopt(self, process: subprocess.Popen[bytes], now: float) -> None:
        """Takes a process that was started elsewhere as its own."""
        self._process, self._started_at, self.due_at = process, now, None
        self.layout.write_pid(self.name, process.pid)

    def tend(self, now: float) -> bool:
        """Notices a death and, when its pause is over, launches again. True when it did."""
        if self.alive:
            return False
        if self.due_at is None:
            self.deaths = 1 if now - self._started_at >= SETTLED_SECONDS else self.deaths + 1
            self.due_at = now + pause_seconds(self.deaths)
        if now < self.due_at:
            return False
        self.launch(now)
        return True

    def ask_to_stop(self) -> None:
        if self._process and self.alive:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL when it is still there, and waits for its end."""
        if self._process and self.alive:
            self._process.kill()
            self._process.wait()

    def last_words(self, characters: int = 2_000) -> str:
        """The end of its log."""
        try:
            with self.layout.log_of(self.name).open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - characters))
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
