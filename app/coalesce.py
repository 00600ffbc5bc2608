"""Many callers, one statement: what waits while a batch is under way goes out in the next one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_Asked = tuple[Sequence[T], asyncio.Future[Sequence[R | Exception]]]


class Coalescer(Generic[T, R]):
    """Gathers items of concurrent callers into batches and hands each caller its own answer.

    `flush(items)` takes items in the order they came and returns one answer per item, in that order; an answer that
    is an `Exception` is its own caller's. What `flush` itself raises is the answer to every item of that batch. A batch
    has at most `batch_max` items, or those of one caller. One flush is in flight at a time and nothing lingers: an
    item that comes alone goes out alone.

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
        self._waiting: deque[_Asked[T, R]] = deque()
        self._runner: asyncio.Task[None] | None = None

    async def submit(self, item: T) -> R:
        """The answer to `item`. Raises what `flush` answered or raised for it."""
        [answer] = await self._asked([item])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def submit_all(self, items: Sequence[T]) -> Sequence[R | Exception]:
        """The answers to the items of one caller, which go in one batch, in their order."""
        return await self._asked(items)

    def _asked(self, items: Sequence[T]) -> asyncio.Future[Sequence[R | Exception]]:
        loop = asyncio.get_running_loop()
        answers: asyncio.Future[Sequence[R | Exception]] = loop.create_future()
        self._waiting.append((items, answers))
        if self._runner is None:
            # A context of its own: the batch is everybody's, the first caller's log fields are not.
            self._runner = loop.create_task(self._run(), context=Context())
        return answers

    async def drain(self) -> None:
        """Returns once everything submitted so far has been answered."""
        while self._runner is not None:
            await asyncio.wait([self._runner])

    async def _run(self) -> None:
        batch: list[_Asked[T, R]] = []
        try:
            while batch := self._take():
                await self._answer(batch)
        finally:
            self._runner = None
            for _, answers in (*batch, *self._waiting):
                answers.cancel()
            self._waiting.clear()

    def _take(self) -> list[_Asked[T, R]]:
        batch: list[_Asked[T, R]] = []
        count = 0
        while self._waiting:
            items, answers = self._waiting[0]
            if batch and count + len(items) > self._batch_max:
                break
            self._waiting.popleft()
            if not answers.cancelled():
                batch.append((items, answers))
                count += len(items)
        return batch

    async def _answer(self, batch: list[_Asked[T, R]]) -> None:
        together = [item for items, _ in batch for item in items]
        try:
            found = await self._flush(together)
        except Exception as error:
            found = [error] * len(together)
        answered = 0
        for items, answers in batch:
            if not answers.done():
                answers.set_result(found[answered : answered + len(items)])
            answered += len(items)
