"""The operator's commands: killed in the middle, and given again."""

from __future__ import annotations

import asyncio

from tests.chaos.faults.scene import EXIT_SECONDS, Scene, fault
from tests.chaos.world import OPEN, until
from tests.processes import Process

ALL_DEAD_SECONDS = 30.0
REPLAY_ID = "chaos"
RATE_PER_SECOND = 40
BEGUN_SECONDS = 30.0
REPLAY_KILLED_WITHIN_SECONDS = 2.2

SUBMITTED = "SELECT count(*) FROM jobs"
DEAD = "SELECT job_id::text FROM dead_letters"


@fault("replay killed")
async def kill_replay(scene: Scene, draw: float) -> str | None:
    """SIGKILL to the replay command somewhere in its work."""
    if not scene.to_replay:
        await _until_all_dead(scene)
    process = _replay(scene)

    async def begun() -> bool:
        return "replay id" in process.stderr or not process.alive()

    await until(begun, BEGUN_SECONDS)
    await asyncio.sleep(draw * REPLAY_KILLED_WITHIN_SECONDS)
    if not process.alive():
        return None
    process.kill()
    return str(process.pid)


async def finish_replay(scene: Scene) -> None:
    """The same command once more, to its end, when it was killed in this run."""
    if scene.to_replay:
        await scene.must_leave(_replay(scene), EXIT_SECONDS + len(scene.to_replay) / RATE_PER_SECOND)


def _replay(scene: Scene) -> Process:
    words = [
        "dead",
        "replay",
        "--all",
        "--reason",
        "fixed",
        "--replay-id",
        REPLAY_ID,
        "--rate",
        f"{RATE_PER_SECOND}/s",
        "--yes",
    ]
    return scene.world.stack.start(*words)


async def _until_all_dead(scene: Scene) -> None:
    async def all_ended() -> bool:
        [[submitted]] = await scene.world.fetch(SUBMITTED)
        return submitted == scene.world.shape.jobs and not await scene.world.fetch(OPEN)

    await until(all_ended, ALL_DEAD_SECONDS)
    scene.to_replay = frozenset(row["job_id"] for row in await scene.world.fetch(DEAD))
