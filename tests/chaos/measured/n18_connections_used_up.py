"""N18: when PostgreSQL has no connection left a submit is told so within a second, and told when to come back."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress

import asyncpg

from app.store.database import AWAY
from tests.chaos.measured.figure import LONG, Figure, Measured, Sheet
from tests.chaos.measured.handlers import NOTHING, PLAIN
from tests.chaos.measured.scene import Scene
from tests.chaos.records import Finding
from tests.chaos.world import until

CALLS = 100 if LONG else 20
TOGETHER = 20
AGAIN_SECONDS = 0.005
FULL_SECONDS = 30.0
ANSWER_SECONDS = 1.0
BACK_SECONDS = 2.0
UNAVAILABLE = 503

OF_API = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'outlast api' AND datname = current_database()
"""


class Greedy:
    """Takes every connection there is, and each that becomes free."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._held: list[asyncpg.Connection] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._take()) for _ in range(TOGETHER)]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._held:
            connection.terminate()

    async def _take(self) -> None:
        while True:
            with suppress(*AWAY):
                self._held.append(await asyncpg.connect(self._url))
                continue
            await asyncio.sleep(AGAIN_SECONDS)


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """Takes the API's connections away and all others that there are; then every submit is timed."""
    sheet = Sheet(faults=1)
    keeper = await asyncpg.connect(scene.database_url)
    greedy = Greedy(scene.database_url)
    greedy.start()

    async def refused() -> bool:
        terminated = await keeper.fetch(OF_API)
        return not terminated and (await _submit(scene))[0] == UNAVAILABLE

    try:
        if not await until(refused, FULL_SECONDS):
            sheet.findings.append(Finding("no bite", "", "connections were not used up"))
        answers = [await _submit(scene) for _ in range(CALLS)]
    finally:
        await greedy.stop()
        await keeper.close()
    for status, comes_back, _ in answers:
        if status != UNAVAILABLE or not comes_back:
            sheet.findings.append(Finding("answer", "", f"{status}, Retry-After: {comes_back}"))
    sheet.figures.append(
        Figure("slowest answer without a connection", max(took for *_, took in answers), ANSWER_SECONDS)
    )
    began = time.monotonic()
    sheet.jobs = len(await scene.submit(NOTHING, [PLAIN]))
    sheet.figures.append(Figure("accepted again", time.monotonic() - began, BACK_SECONDS))
    return sheet


async def _submit(scene: Scene) -> tuple[int, bool, float]:
    """The status, whether it says when to come back, and how long it took."""
    began = time.monotonic()
    answer = await scene.http.post("/v1/jobs", json={"kind": NOTHING, "input": PLAIN})
    if answer.is_success:
        scene.accepted.append(answer.json()["id"])
    return answer.status_code, "retry-after" in answer.headers, time.monotonic() - began


RUN = Measured("N18c", "connections used up", measure)
