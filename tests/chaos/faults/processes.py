"""Our own processes: killed, frozen, replaced."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import asyncpg

from tests.chaos.faults.scene import HIT_SECONDS, Scene, fault
from tests.chaos.world import until
from tests.processes import Process, is_running

ENTER_SECONDS = 90.0
RACE_SECONDS = 0.4

HOLDERS = """
SELECT w.pid, min(l.job_id::text) AS job_id, min(l.attempt) AS attempt
FROM leases l JOIN workers w ON w.id = l.worker_id
WHERE w.role = 'worker' AND w.left_at IS NULL GROUP BY w.pid ORDER BY w.pid
"""
HELD = """
SELECT l.job_id::text FROM leases l JOIN workers w ON w.id = l.worker_id WHERE w.pid = $1 AND w.left_at IS NULL
"""
BEYOND = """
SELECT FROM outcomes WHERE job_id = $1::text::uuid UNION ALL SELECT FROM dead_letters WHERE job_id = $1::text::uuid
"""


@fault("worker killed")
async def kill_worker(scene: Scene, draw: float) -> str | None:
    """SIGKILL to a child that holds a lease now."""
    if (held := await _holder(scene, draw)) is None:
        return None
    pid = held[0]
    os.kill(pid, signal.SIGKILL)
    return str(pid)


@fault("cancels race rescues")
async def cancel_what_is_rescued(scene: Scene, draw: float) -> str | None:
    """SIGKILL to a child at work, and cancels of everything it held while it is rescued, each a little later."""
    if (held := await _holder(scene, draw)) is None:
        return None
    pid, dice = held[0], random.Random(draw)
    os.kill(pid, signal.SIGSTOP)
    scene.busy.add(pid)
    jobs = [row["job_id"] for row in await scene.world.fetch(HELD, pid)]
    os.kill(pid, signal.SIGKILL)

    async def cancel(job_id: str) -> None:
        await asyncio.sleep(dice.uniform(0, RACE_SECONDS))
        await scene.cancel(job_id)

    await asyncio.gather(*(cancel(job_id) for job_id in jobs))
    return " ".join([str(pid), *jobs]) if jobs else None


@fault("worker and supervisor killed")
async def kill_worker_with_supervisor(scene: Scene, draw: float) -> str | None:
    if (held := await _holder(scene, draw)) is None:
        return None
    pid = held[0]
    supervisor = _supervisor_of(scene, pid)
    for victim in (supervisor.pid, pid):
        os.kill(victim, signal.SIGKILL)
    supervisor.popen.wait()
    scene.world.workers.remove(supervisor)
    scene.world.start_worker()
    return f"{supervisor.pid} {pid}"


@fault("worker frozen")
async def freeze_worker(scene: Scene, draw: float) -> str | None:
    """SIGSTOP to a child that holds a lease until somebody else has ended its job; then SIGCONT."""
    if (held := await _holder(scene, draw)) is None:
        return None
    pid, job_id, attempt = held
    os.kill(pid, signal.SIGSTOP)
    scene.busy.add(pid)

    async def ended() -> object:
        return await scene.world.fetch(BEYOND, job_id)

    try:
        beyond = await until(ended, 2 * scene.world.settings.lease_seconds + HIT_SECONDS)
    finally:
        os.kill(pid, signal.SIGCONT)
        scene.busy.remove(pid)
    return f"{pid} {job_id} {attempt}" if beyond else None


@fault("worker restarted")
async def restart_worker(scene: Scene, _: float) -> str | None:
    """Another worker is started; once it has entered an old one gets SIGTERM, and must leave with 0 in time."""
    scene.world.start_worker()
    leaving, entering = scene.world.workers.pop(0), scene.world.workers[-1]

    async def entered() -> bool:
        return "worker_entered" in entering.stderr

    if not await until(entered, ENTER_SECONDS):
        return None
    leaving.send(signal.SIGTERM)
    await scene.must_leave(leaving)
    return str(leaving.pid)


@fault("relay killed")
async def kill_relay(scene: Scene, draw: float) -> str | None:
    relay = scene.world.relays.pop(int(draw * len(scene.world.relays)))
    relay.kill()
    scene.world.start_relay()
    return str(relay.pid)


@fault("API killed")
async def kill_api(scene: Scene, _: float) -> str | None:
    before = scene.world.api
    before.kill()
    scene.world.start_api()
    return str(before.pid)


async def _holder(scene: Scene, draw: float) -> tuple[int, str, int] | None:
    """The pid of a worker that holds a lease, with one job and its attempt; none when none does for long."""
    found: list[asyncpg.Record] = []

    async def some() -> bool:
        rows = await scene.world.fetch(HOLDERS)
        found[:] = [row for row in rows if is_running(row["pid"]) and row["pid"] not in scene.busy]
        return bool(found)

    if not await until(some, HIT_SECONDS):
        return None
    row = found[int(draw * len(found))]
    return row["pid"], row["job_id"], row["attempt"]


def _supervisor_of(scene: Scene, pid: int) -> Process:
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return next(one for one in scene.world.workers if one.pid == parent)
