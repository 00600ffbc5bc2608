"""Clients of the API: cut off once their submit has been sent, before the answer or in place of it."""

from __future__ import annotations

from tests.chaos.faults.scene import Scene, fault, within_reach
from tests.chaos.world import Road


@fault("request cut off")
async def cut_request(scene: Scene, draw: float) -> str | None:
    road = scene.world.roads[Road.CLIENT_API]
    trap = road.cut_after_request if draw < 0.5 else road.swallow
    return await within_reach(trap(lambda text: text.startswith("POST /v1/jobs ")))
