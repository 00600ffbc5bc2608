"""Threads for blocking code: bounded, reused, and honest about what still runs."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from workers.handling.threads import Threads


async def test_a_call_gives_back_what_it_returns_and_raises_what_it_raises() -> None:
    threads = Threads(2)
    assert await threads.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 / 0)


async def test_no_more_calls_run_at_once_than_there_are_threads() -> None:
    threads = Threads(3)
    lock = threading.Lock()
    running, most = 0, 0
    all_in = threading.Barrier(3)

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        all_in.wait(10)
        with lock:
            running -= 1

    await asyncio.gather(*[threads.run(call) for _ in range(9)])
    assert most == 3


async def test_a_call_sees_the_context_of_its_caller() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    who.set("the job")
    assert await Threads(1).run(who.get) == "the job"


async def test_a_call_given_up_while_it_runs_is_counted_until_it_ends() -> None:
    threads = Threads(1)
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def stuck() -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(10)

    caller = asyncio.create_task(threads.run(stuck))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert threads.stragglers == 1
    go_on.set()
    await threads.run(lambda: None)  # the only thread: the straggler has ended
    assert threads.stragglers == 0


async def test_a_call_given_up_before_it_begins_never_runs() -> None:
    threads = Threads(1)
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    ran: list[str] = []

    def first() -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(10)

    busy = asyncio.create_task(threads.run(first))
    await begun.wait()
    waiting = asyncio.create_task(threads.run(lambda: ran.append("second")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    await busy
    await threads.run(lambda: ran.append("third"))
    assert ran == ["third"]
    assert threads.stragglers == 0


async def test_an_exit_in_a_thread_reaches_the_caller_and_spares_the_thread() -> None:
    threads = Threads(1)

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await threads.run(leave)
    assert await threads.run(lambda: "still here") == "still here"
