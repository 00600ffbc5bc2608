"""A copy of the process ends where it comes back; the original goes on undisturbed."""

from __future__ import annotations

import asyncio
import os

import pytest

from workers.guarding.copies import EXIT_COPY, in_original


async def fork_then(end: str) -> int:
    """Forks and comes back in the way named; the process id of the copy."""
    pid = os.fork()
    if not pid and end == "raises":
        raise ValueError("in the copy")
    if not pid and end == "awaits":
        await asyncio.sleep(0)
    return pid


@pytest.mark.parametrize("end", ["returns", "raises", "awaits"])
async def test_a_copy_ends_as_soon_as_it_comes_back(end: str) -> None:
    pid = await in_original(fork_then(end))

    _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    assert os.waitstatus_to_exitcode(status) == EXIT_COPY


async def test_the_original_awaits_returns_raises_and_is_cancelled_as_ever() -> None:
    seen: list[str] = []

    async def work() -> int:
        try:
            await asyncio.wait_for(asyncio.get_running_loop().create_future(), 0.01)
        except TimeoutError:
            seen.append("timed out")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
        await asyncio.sleep(0)
        return 7

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("as ever")

    running = asyncio.ensure_future(in_original(work()))
    async with asyncio.timeout(10):
        while not seen:
            await asyncio.sleep(0.001)
    running.cancel()
    assert await running == 7
    assert seen == ["timed out", "cancelled"]
    with pytest.raises(ValueError, match="as ever"):
        await in_original(fails())
