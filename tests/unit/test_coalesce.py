"""Concurrent callers share a batch and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from app.coalesce import Coalescer


class Doubler:
    """Doubles numbers; refuses negatives one by one; waits at the gate while it is closed."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()

    async def flush(self, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(items))
        self.entered.set()
        await self.gate.wait()
        return [ValueError(item) if item < 0 else 2 * item for item in items]


async def test_a_lone_item_goes_out_alone_and_what_waits_meanwhile_goes_together() -> None:
    doubler = Doubler()
    doubler.gate.clear()
    coalescer = Coalescer(doubler.flush, batch_max=100)
    first = asyncio.create_task(coalescer.submit(0))
    await doubler.entered.wait()
    rest = [asyncio.create_task(coalescer.submit(number)) for number in range(1, 50)]
    await asyncio.sleep(0)
    doubler.gate.set()
    assert await first == 0
    assert await asyncio.gather(*rest) == [2 * number for number in range(1, 50)]
    assert doubler.batches == [[0], list(range(1, 50))]


async def test_no_batch_is_larger_than_its_limit() -> None:
    doubler = Doubler()
    coalescer = Coalescer(doubler.flush, batch_max=7)
    await asyncio.gather(*(coalescer.submit(number) for number in range(30)))
    assert max(map(len, doubler.batches)) == 7
    assert [item for batch in doubler.batches for item in batch] == list(range(30))


async def test_what_one_caller_brings_goes_in_one_batch_in_its_order() -> None:
    doubler = Doubler()
    coalescer = Coalescer(doubler.flush, batch_max=4)
    groups = [[1, 2, 3], [4], [5, 6], list(range(7, 17))]
    answers = await asyncio.gather(*(coalescer.submit_all(group) for group in groups))
    assert answers == [[2 * number for number in group] for group in groups]
    assert doubler.batches == [[1, 2, 3, 4], [5, 6], list(range(7, 17))]


async def test_one_refused_item_fails_only_its_own_caller() -> None:
    coalescer = Coalescer(Doubler().flush, batch_max=100)
    answers = await asyncio.gather(*(coalescer.submit(n) for n in (1, -1, 2)), return_exceptions=True)
    assert answers[0] == 2
    assert answers[2] == 4
    assert isinstance(answers[1], ValueError)


async def test_a_failing_flush_reaches_every_caller_of_its_batch_and_the_next_batch_works() -> None:
    failures = [OSError("away")]

    async def flush(items: Sequence[int]) -> Sequence[int]:
        if failures:
            raise failures.pop()
        return items

    coalescer = Coalescer(flush, batch_max=100)
    answers = await asyncio.gather(*(coalescer.submit(n) for n in range(3)), return_exceptions=True)
    assert all(isinstance(answer, OSError) for answer in answers)
    assert await coalescer.submit(4) == 4


async def test_a_cancelled_caller_takes_its_waiting_item_back_and_hurts_nobody() -> None:
    doubler = Doubler()
    doubler.gate.clear()
    coalescer = Coalescer(doubler.flush, batch_max=100)
    taken = asyncio.create_task(coalescer.submit(1))
    await doubler.entered.wait()
    waiting = asyncio.create_task(coalescer.submit(2))
    other = asyncio.create_task(coalescer.submit(3))
    await asyncio.sleep(0)
    taken.cancel()
    waiting.cancel()
    await asyncio.sleep(0)
    doubler.gate.set()
    assert await other == 6
    assert doubler.batches == [[1], [3]]


async def test_drain_returns_when_everything_is_answered() -> None:
    doubler = Doubler()
    doubler.gate.clear()
    coalescer = Coalescer(doubler.flush, batch_max=1)
    tasks = [asyncio.create_task(coalescer.submit(n)) for n in range(3)]
    await doubler.entered.wait()
    doubler.gate.set()
    await coalescer.drain()
    assert doubler.batches == [[0], [1], [2]]
    assert await asyncio.gather(*tasks) == [0, 2, 4]


async def test_a_batch_that_is_cancelled_cancels_its_callers_rather_than_leaving_them() -> None:
    async def flush(items: Sequence[int]) -> Sequence[int]:
        raise asyncio.CancelledError

    coalescer = Coalescer(flush, batch_max=10)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(coalescer.submit(1), 5)
