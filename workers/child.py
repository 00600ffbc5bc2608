"""The process around a worker: handlers loaded first, then orders awaited, then work.

`python -m workers.child` is started by `workers.supervisor`, never by hand.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import uvloop

from app.domain.errors import HandlersRefused
from app.settings import Settings
from app.store.database import Database
from app.telemetry import bind_process, configure, log
from workers.orders import Orders
from workers.parent_watch import ParentWatch
from workers.registry import Registry, load
from workers.worker import EXIT_DRAINED, EXIT_RELEASED_LATE, Worker

EXIT_HANDLERS_REFUSED = 78  # EX_CONFIG of sysexits(3)


async def _live(settings: Settings, registry: Registry, orders: Orders, watch: ParentWatch) -> int:
    worker = Worker(settings, registry, orders, await Database.open(settings, orders.role))
    loop = asyncio.get_running_loop()
    watch.on_orphaned = lambda: loop.call_soon_threadsafe(worker.give_up)
    return await worker.run()


def main() -> int:
    """Loads the handlers, waits for orders, works; the exit code."""
    watch = ParentWatch(EXIT_RELEASED_LATE)
    watch.start()
    settings = Settings()
    configure(settings, "worker")
    try:
        registry = load(settings.handler_modules)
        registry.published()
    except HandlersRefused as error:
        log.error("handlers_refused", error=str(error))
        return EXIT_HANDLERS_REFUSED
    line = sys.stdin.buffer.readline()
    if not line:
        return EXIT_DRAINED
    orders = Orders.parse(line)
    bind_process(worker=str(orders.worker_id), role=orders.role)
    return uvloop.run(_live(settings, registry, orders, watch))


def _exit(code: int) -> None:
    """Ends even when a handler's thread does not."""
    sys.stdout.flush()
    sys.stderr.flush()
    stuck = [
        thread for thread in threading.enumerate() if thread is not threading.current_thread() and not thread.daemon
    ]
    if stuck:
        log.warning("threads_left_behind", count=len(stuck))
    os._exit(code)


if __name__ == "__main__":
    _exit(main())
