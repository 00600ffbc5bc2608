"""Many callers, one statement: what waits while a batch is under way goes out in the next one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Coalescer(Generic[T, R]):
    """Gathers items of concurrent callers into batches and hands each caller its own answer.

    `flush(items)` takes 1..`batch_max` items in the order they came and returns one answer per
    item, in that order; an answer that is an `Exception` is raised at its own caller. What `flush`
    itself raises is raised at every caller of that batch. One flush is in flight at a time and
    nothing lingers: an item that comes alone goes out alone.

    A caller that is cancelled before its item was taken takes the item back; after that the item
    goes through and only its answer is dropped.
    """

    def __init__(
        self,
        flush: Callable[[Sequence[T]], Awaitable[Sequence[R | Exception]]],
        *,
        batch_max: int,
    ) -> None:
        self._flush = flush
        self._batch_max = batch_max
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._runner: asyncio.Task[None] | None = None

    async def submit(self, item: T) -> R:
        """The answer to `item`. Raises what `flush` answered or raised for it."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._runner is None:
            # A context of its own: the batch is everybody's, the first caller's log fields are not.
            self._runner = asyncio.get_running_loop().create_task(self._run(), context=Context())
        return await future

    async def drain(self) -> None:
        """Returns once everything submitted so far has been answered."""
        while self._runner is not None:
            await asyncio.wait([self._runner])

    async def _run(self) -> None:
        batch: list[tuple[T, asyncio.Future[R]]] = []
        try:
            while batch := self._take():
                await self._answer(batch)
        finally:
            self._runner = None
            for _, future in (*batch, *self._waiting):
                future.cancel()
            self._waiting.clear()

    def _take(self) -> list[tuple[T, asyncio.Future[R]]]:
        batch: list[tuple[T, asyncio.Future[R]]] = []
        while self._waiting and len(batch) < self._batch_max:
            entry = self._waiting.popleft()
            if not entry[1].cancelled():
                batch.append(entry)
        return batch

    async def _answer(self, batch: list[tuple[T, asyncio.Future[R]]]) -> None:
        answers: Sequence[R | Exception]
        try:
            answers = await self._flush([item for item, _ in batch])
        except Exception as error:
            answers = [error] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
