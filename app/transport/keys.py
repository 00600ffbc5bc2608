"""Every name Outlast uses at Redis.

| name                     | type   | written by                        | holds                                     |
|--------------------------|--------|-----------------------------------|-------------------------------------------|
| `outlast:stream:<queue>` | stream | relay (XADD), workers (XACK+XDEL) | entries `job`, `attempt`; never a payload |
| `workers` on each        | group  | whoever finds it missing, at `0`  | one consumer per worker process, its id   |
"""

from __future__ import annotations

STREAM_PREFIX = "outlast:stream:"
GROUP = "workers"
JOB_FIELD = "job"
ATTEMPT_FIELD = "attempt"


def stream(queue: str) -> str:
    """The stream of a queue."""
    return STREAM_PREFIX + queue


def queue_of(key: str) -> str:
    """The queue of a stream."""
    return key.removeprefix(STREAM_PREFIX)
