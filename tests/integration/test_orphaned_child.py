"""A child that lost its supervisor before it could work leaves the jobs that wait to others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from uuid import uuid4

from tests.integration.world import World
from tests.processes import ROOT, Stack
from workers.exits import EXIT_DRAINED, EXIT_RELEASED_LATE
from workers.orders import Orders

ENDED_SECONDS = 30


async def test_a_child_whose_supervisor_died_while_it_started_takes_no_job(world: World, stack: Stack) -> None:
    [job_id] = await world.submit(kind="test.steps")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.child", str(os.getppid())),
        cwd=ROOT,
        env=stack.environment({"OUTLAST_HANDLERS": "tests.handlers.steps", "OUTLAST_TRANSPORT": "pg"}),
        stdin=subprocess.PIPE,
    )
    try:
        await asyncio.wait_for(child.communicate(Orders(uuid4()).line()), ENDED_SECONDS)
    finally:
        if child.returncode is None:
            child.kill()
    assert child.returncode in {EXIT_DRAINED, EXIT_RELEASED_LATE}
    waiting = await world.row("outbox", job_id)
    assert waiting is not None
    assert waiting["attempt"] == 0
