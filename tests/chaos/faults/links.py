"""Connections: bad for a while in one of four ways, or swallowing the one answer that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from hashlib import sha1

from tests.chaos.faults.scene import Act, Scene, fault, within_reach
from tests.chaos.proxy import Proxy, Way
from tests.chaos.world import Road
from tests.processes import ROOT

PUBLISH = sha1((ROOT / "app/transport/scripts/publish.lua").read_bytes(), usedforsecurity=False).hexdigest()
SLOW_SECONDS = 0.2


@fault("API commit swallowed")
async def swallow_api_commit(scene: Scene, _: float) -> str | None:
    return await _swallow_commit(scene, Road.API_POSTGRES, "outlast api")


@fault("worker commit swallowed")
async def swallow_worker_commit(scene: Scene, _: float) -> str | None:
    return await _swallow_commit(scene, Road.WORKER_POSTGRES, "outlast worker")


@fault("relay commit swallowed")
async def swallow_relay_commit(scene: Scene, _: float) -> str | None:
    return await _swallow_commit(scene, Road.RELAY_POSTGRES, "outlast relay")


@fault("XADD swallowed")
async def swallow_xadd(scene: Scene, _: float) -> str | None:
    about = await within_reach(scene.world.roads[Road.RELAY_REDIS].swallow(lambda text: PUBLISH in text))
    return about and "publish"


@fault("links cut")
async def cut_links(scene: Scene, _: float) -> str | None:
    return f"{sum(road.cut() for road in scene.world.roads.values())} links"


def cut(road: Proxy, _: float) -> None:
    """Every connection is reset, and every new one."""
    road.refuses = True
    road.cut()


def black(road: Proxy, _: float) -> None:
    road.hold()


def one_way(road: Proxy, draw: float) -> None:
    road.hold(Way.REQUESTS if draw < 0.5 else Way.REPLIES)


def slow(road: Proxy, _: float) -> None:
    road.delay_seconds = SLOW_SECONDS


HURTS: Mapping[str, Callable[[Proxy, float], None]] = {"cut": cut, "black": black, "one way": one_way, "slow": slow}


def hurt_name(road: Road, how: str) -> str:
    """What the fault is called that makes this road bad in this way for a while."""
    return f"{road} {how}"


def _hurting(road: Road, hurt: Callable[[Proxy, float], None]) -> Act:
    async def act(scene: Scene, draw: float) -> str | None:
        proxy, seconds = scene.world.roads[road], scene.world.shape.lasting_seconds
        hurt(proxy, draw)
        await asyncio.sleep(seconds)
        proxy.heal()
        return f"{seconds} s"

    return act


for road in Road:
    for how, hurt in HURTS.items():
        fault(hurt_name(road, how))(_hurting(road, hurt))


async def _swallow_commit(scene: Scene, road: Road, application: str) -> str | None:
    about = await within_reach(scene.world.roads[road].swallow(lambda text: text.startswith(f"{application}:")))
    return about and " ".join(about.split())[:100]
