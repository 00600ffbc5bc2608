"""Ends a child whose supervisor is gone, whatever the child is doing.

From a thread of its own and from the first moment on: a child that waits for a database that will never come back,
or whose event loop is blocked, must not outlive the stack it belongs to.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

LOOK_SECONDS = 0.25
ORPHAN_SECONDS = 3.0


class ParentWatch:
    """Calls `on_orphaned` once, from its thread, and ends the process with `exit_code` some seconds later.

    `parent` is told by the parent: it may be gone before the first look, and `orphaned` be true before anyone could
    set `on_orphaned`.
    """

    def __init__(self, exit_code: int, *, parent: int) -> None:
        self.on_orphaned: Callable[[], object] = lambda: None
        self.orphaned = False
        self._exit_code = exit_code
        self._parent = parent

    def start(self) -> None:
        threading.Thread(target=self._run, name="parent watch", daemon=True).start()

    def _run(self) -> None:
        while os.getppid() == self._parent:
            time.sleep(LOOK_SECONDS)
        self.orphaned = True
        self.on_orphaned()
        time.sleep(ORPHAN_SECONDS)
        os._exit(self._exit_code)
