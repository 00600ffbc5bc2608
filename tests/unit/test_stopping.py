"""A cancel ends what it is meant to end, whatever is raised while it passes through."""

from __future__ import annotations

import asyncio

from workers.guarding.ending import end


async def test_a_loop_that_lost_its_first_cancel_is_cancelled_again() -> None:
    lost: list[str] = []

    async def patient() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost.append("the first one")

    task = asyncio.create_task(patient())
    await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await end([task])

    assert task.cancelled()
    assert lost
