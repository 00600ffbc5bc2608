"""Wall clocks: set back while everybody works."""

from __future__ import annotations

from tests.chaos.clocks import is_shifted
from tests.chaos.faults.scene import Scene, fault
from tests.processes import children

STEP_SECONDS = 7_200.0


@fault("clocks stepped back")
async def step_back(scene: Scene, _: float) -> str | None:
    """Every shifted clock, by two hours; nothing is hit when a process of the world has a true one."""
    world = scene.world
    family = [pid for one in (world.api, *world.relays, *world.workers) for pid in (one.pid, *children(one.pid))]
    if not all(is_shifted(pid) for pid in family):
        return None
    for clock in world.clocks.values():
        clock.step_back(STEP_SECONDS)
    return f"{len(family)} processes"
