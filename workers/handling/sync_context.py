"""What a `def` handler holds in its hand: the same names, blocking."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, overload

from app.domain.errors import LeaseLost
from app.domain.states import Policy
from workers.guarding.copies import end_copies
from workers.handling.context import Context, Facts, Keyed, PolicyName
from workers.handling.run_lease import RunLease

Args = TypeVarTuple("Args")
R = TypeVar("R")


class SyncContext(Facts):
    """One attempt of one job, for a `def` handler in its thread.

    Once the attempt is over every call raises `LeaseLost`, also one that is waiting: nothing can end a
    thread, but this one can do no more.
    """

    def __init__(self, lease: RunLease, context: Context) -> None:
        super().__init__(lease)
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._open: set[concurrent.futures.Future[Any]] = set()
        self._closed = False

    def progress(self, done: float, total: float, message: str = "") -> None:
        """As `Context.progress`."""
        self._wait(lambda: self._context.progress(done, total, message))

    @overload
    def effect(
        self,
        key: str,
        fn: Callable[[*Args], Coroutine[Any, Any, R]] | Keyed[*Args, Coroutine[Any, Any, R]],
        *args: *Args,
        policy: PolicyName | Policy = ...,
        reconcile: Callable[..., Any] | None = ...,
    ) -> R: ...
    @overload
    def effect(
        self,
        key: str,
        fn: Callable[[*Args], R] | Keyed[*Args, R],
        *args: *Args,
        policy: PolicyName | Policy = ...,
        reconcile: Callable[..., Any] | None = ...,
    ) -> R: ...
    def effect(
        self,
        key: str,
        fn: Callable[..., Any],
        *args: Any,
        policy: PolicyName | Policy = "repeatable",
        reconcile: Callable[..., Any] | None = None,
    ) -> Any:
        """As `Context.effect`."""
        return self._wait(lambda: self._context.effect(key, fn, *args, policy=policy, reconcile=reconcile))

    def transact(self, key: str, fn: Callable[[Any, *Args], Awaitable[R]], *args: *Args) -> R:
        """As `Context.transact`; `fn` is an `async def` and runs on the worker's event loop."""
        return self._wait(lambda: self._context.transact(key, fn, *args))

    def close(self) -> None:
        """Ends the attempt for its thread."""
        with self._lock:
            self._closed = True
            waiting = list(self._open)
        for future in waiting:
            future.cancel()

    def _wait(self, begin: Callable[[], Coroutine[Any, Any, R]]) -> R:
        end_copies()  # the event loop is not in this process
        # Under the lock, so that close() misses no future that somebody is going to wait for.
        with self._lock:
            if self._closed:
                raise LeaseLost("the attempt has ended")
            future = asyncio.run_coroutine_threadsafe(begin(), self._loop)
            self._open.add(future)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise LeaseLost("the attempt has ended") from error
        finally:
            with self._lock:
                self._open.discard(future)
