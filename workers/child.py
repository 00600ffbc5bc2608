"""The process around a worker: handlers loaded first, then orders awaited, then work.

`python -m workers.child PID` is started by `workers.supervisor`, whose process id that is, never by hand.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import uvloop

from app import failpoints
from app.domain.errors import HandlersRefused
from app.garbage import look_seldom
from app.settings import Settings
from app.store.database import Database
from app.telemetry import bind_process, configure, frames, log
from workers.exits import EXIT_DRAINED, EXIT_FAILED, EXIT_HANDLERS_REFUSED, EXIT_RELEASED_LATE
from workers.guarding.parent_watch import ParentWatch
from workers.orders import Orders
from workers.registry import Registry, load
from workers.worker import Worker


async def _live(settings: Settings, registry: Registry, orders: Orders, watch: ParentWatch) -> int:
    db = await Database.open(settings, orders.role)
    transactions = await Database.open(settings, f"{orders.role} transactions")
    worker = Worker(settings, registry, orders, db, transactions)
    loop = asyncio.get_running_loop()
    watch.on_orphaned = lambda: loop.call_soon_threadsafe(worker.hurry)
    if watch.orphaned:
        worker.hurry()  # nobody was there to be told: what it took now would be lost with it
    return await worker.run()


def main() -> int:
    """Loads the handlers, waits for orders, works; the exit code."""
    watch = ParentWatch(EXIT_RELEASED_LATE, parent=int(sys.argv[1]))
    watch.start()
    faulthandler.enable()
    settings = Settings()
    configure(settings, "worker")
    failpoints.arm(settings)
    try:
        registry = load(settings.handler_modules)
        registry.published()
    except HandlersRefused as error:
        log.error("handlers_refused", error=str(error))
        return EXIT_HANDLERS_REFUSED
    look_seldom()
    line = sys.stdin.buffer.readline()
    if not line:
        return EXIT_DRAINED
    orders = Orders.parse(line)
    bind_process(worker=str(orders.worker_id), role=orders.role)
    return _run(_live(settings, registry, orders, watch))


def _run(work: Coroutine[Any, Any, int]) -> int:
    """Runs the worker to its end; the exit code. No handler ends its event loop.

    `sys.exit` in a task that a handler started, or `loop.stop()`, stops the loop for everybody: it goes on. At the end
    nothing is waited for: a task that swallows its cancellation, or a thread of the loop's pool, may never end.
    """
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    main = loop.create_task(work)
    while not main.done():
        try:
            loop.run_until_complete(main)
        except BaseException as error:
            if not main.done():
                log.error("loop_stopped_by_a_handler", error_type=type(error).__qualname__, where=frames(error))
    if main.cancelled():
        log.error("worker_cancelled_by_a_handler")
        return EXIT_FAILED
    return main.result()


def _exit(code: int) -> None:
    """Ends even when a handler's thread does not."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a handler may have closed it, or put something else in its place
            stream.flush()
    stuck = [
        thread for thread in threading.enumerate() if thread is not threading.current_thread() and not thread.daemon
    ]
    if stuck:
        log.warning("threads_left_behind", count=len(stuck))
    os._exit(code)


if __name__ == "__main__":
    _exit(main())
