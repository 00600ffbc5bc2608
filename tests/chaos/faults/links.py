"""Connections: cut, swallowing everything, or swallowing the one answer that matters."""

from __future__ import annotations

import asyncio
from hashlib import sha1

from tests.chaos.faults.scene import Scene, fault, within_reach
from tests.processes import ROOT

PUBLISH = sha1((ROOT / "app/transport/scripts/publish.lua").read_bytes(), usedforsecurity=False).hexdigest()


@fault("API commit swallowed")
async def swallow_api_commit(scene: Scene, _: float) -> str | None:
    return await _swallow_commit(scene, "outlast api")


@fault("worker commit swallowed")
async def swallow_worker_commit(scene: Scene, _: float) -> str | None:
    return await _swallow_commit(scene, "outlast worker")


@fault("relay commit swallowed")
async def swallow_relay_commit(scene: Scene, _: float) -> str | None:
    return await _swallow_commit(scene, "outlast relay")


@fault("XADD swallowed")
async def swallow_xadd(scene: Scene, _: float) -> str | None:
    about = await within_reach(scene.world.roads["redis"].swallow(lambda text: PUBLISH in text))
    return about and "publish"


@fault("links cut")
async def cut_links(scene: Scene, _: float) -> str | None:
    return f"{sum(road.cut() for road in scene.world.roads.values())} links"


@fault("links black")
async def black_hole(scene: Scene, draw: float) -> str | None:
    """One road swallows everything for a second, and then goes on where it was."""
    roads = scene.world.roads
    name = sorted(roads)[int(draw * len(roads))]
    roads[name].hold()
    await asyncio.sleep(1)
    roads[name].let_pass()
    return name


async def _swallow_commit(scene: Scene, application: str) -> str | None:
    trap = scene.world.roads["postgres"].swallow(lambda text: text.startswith(f"{application}:"))
    about = await within_reach(trap)
    return about and " ".join(about.split())[:100]
