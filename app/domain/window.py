"""How many entries a queue's stream may hold."""

from __future__ import annotations

LEAST = 2
BURST = 64
MOST = 4_096


def window(slots: int, departed_last_second: int) -> int:
    """Entries, read or not, that the stream of a queue with `slots` live slots may hold.

    Twice the slots, so that no slot waits for the relay and a first-priority job waits for about one slot, not for
    a backlog. Jobs that end within milliseconds need more than that to keep few slots busy; how many left within
    the last second shows it, and a quarter of it is a quarter of a second of backlog.
    """
    return min(MOST, max(LEAST, 2 * slots, min(BURST, departed_last_second // 4)))
