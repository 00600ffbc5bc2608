"""PostgreSQL: restarted, killed, its sessions ended."""

from __future__ import annotations

import signal
from contextlib import suppress

from app.store.database import AWAY
from tests.chaos.comeback import bring_back
from tests.chaos.faults.scene import EXIT_SECONDS, Scene, fault
from tests.chaos.world import until

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name LIKE 'outlast %' AND datname = current_database() AND pid <> pg_backend_pid()
"""


@fault("PostgreSQL restarted")
async def restart_postgres(scene: Scene, _: float) -> str | None:
    return await _end_postgres(scene, signal.SIGINT)


@fault("postmaster killed")
async def kill_postmaster(scene: Scene, _: float) -> str | None:
    return await _end_postgres(scene, signal.SIGKILL)


@fault("sessions terminated")
async def terminate_sessions(scene: Scene, _: float) -> str | None:
    with suppress(*AWAY):
        return f"{len(await scene.world.fetch(TERMINATE))} sessions"


async def _end_postgres(scene: Scene, number: signal.Signals) -> str:
    server = scene.world.postgres
    server.process.send_signal(number)

    async def ended() -> bool:
        return server.process.poll() is not None

    await until(ended, EXIT_SECONDS)
    await bring_back(server)
    return number.name
