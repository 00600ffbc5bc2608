"""Code that holds up its process is seen, with its stack and whose it is."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from tests.unit.leased import JOB
from workers.guarding.loop_watch import LoopWatch


class Clock:
    """Seconds as the test wants them."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def looks(watch: LoopWatch, clock: Clock, count: int, seconds: float = 0.2) -> list[bool]:
    """So many looks, from another thread while this one, the loop's, waits: it is blocked here."""
    seen: list[bool] = []

    def look() -> None:
        for _ in range(count):
            clock.now += seconds
            seen.append(watch.run_once())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return seen


async def test_a_blocked_loop_is_reported_once_with_its_stack_and_job(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    me = asyncio.current_task()
    watch = LoopWatch(lambda task: (JOB, "test.kind") if task is me else None, clock=clock)

    assert looks(watch, clock, 20)[-1]

    (line,) = events(capsys)
    assert (line["event"], line["job"], line["attempt"], line["kind"]) == ("loop_blocked", str(JOB.id), 1, "test.kind")
    assert any(place.endswith(" looks") for place in line["where"]), "the code that blocks is on the stack"
    assert watch.episodes == 1


async def test_the_end_of_an_episode_is_told_and_the_next_one_counts_again(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    watch = LoopWatch(clock=clock)
    for _ in range(2):
        looks(watch, clock, 10)
        await asyncio.sleep(0)
        assert looks(watch, clock, 1) == [False]
        await asyncio.sleep(0)

    names = [line["event"] for line in events(capsys)]
    assert names == ["loop_blocked", "loop_free_again"] * 2
    assert watch.episodes == 2


async def test_a_loop_that_answers_is_never_reported(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    watch = LoopWatch(clock=clock)
    for _ in range(20):
        assert looks(watch, clock, 1, seconds=0.9) == [False]
        await asyncio.sleep(0)

    assert events(capsys) == []


async def test_a_process_that_stood_still_is_not_taken_for_a_blocked_loop(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    watch = LoopWatch(clock=clock)
    looks(watch, clock, 1)
    looks(watch, clock, 1, seconds=30)

    (line,) = events(capsys)
    assert (line["event"], line["seconds"]) == ("process_stood_still", 30)
    assert watch.episodes == 0


async def test_it_runs_on_another_thread_and_ends_when_it_is_cancelled() -> None:
    watch = LoopWatch()
    done = threading.Event()

    async def live() -> None:
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])
        done.set()

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    async with asyncio.timeout(10):
        while not done.is_set():
            await asyncio.sleep(0.01)
    thread.join()
