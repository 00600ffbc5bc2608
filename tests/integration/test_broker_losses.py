"""What the broker loses comes back, and nothing else does."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from uuid import UUID, uuid4

import pytest

from app.transport import keys
from app.transport.connect import subscriber
from tests.integration.scene import QUEUE, STREAM, Scene


class TestLoss:
    @pytest.mark.parametrize("loss", ["FLUSHALL", f"DEL {STREAM}", f"SET {STREAM} x", f"XTRIM {STREAM} MAXLEN 0"])
    async def test_what_an_emptied_broker_lost_is_published_again(self, scene: Scene, loss: str) -> None:
        await scene.worker(10)
        ids = await scene.submit(30)
        await scene.passes()
        await scene.raw(*loss.split())
        # A trimmed stream looks like one that was read; only time tells.
        patience = 2 * scene.settings.republish_seconds if loss.startswith("XTRIM") else 0.05
        await scene.passes(2, seconds=patience)
        assert await scene.entries() == ids[:20]

    async def test_a_flush_in_the_middle_of_work_loses_nothing_and_repeats_no_claimed_row(self, scene: Scene) -> None:
        me = await scene.worker(10)
        ids = await scene.submit(60)
        reader = subscriber(scene.settings, me, [QUEUE])
        done: Counter[UUID] = Counter()
        while len(done) < 60:
            await scene.passes(1, seconds=0.05)
            if random.random() < 0.3:
                await scene.raw("FLUSHALL")
            taken = await reader.read(5, 0.01)
            done.update(one.job_id for one in taken)
            await scene.claimed(taken)
            await reader.acknowledge(taken)
        await reader.close()
        assert done == Counter(ids)

    async def test_one_entry_lost_from_the_middle_comes_back_with_the_check(self, scene: Scene) -> None:
        await scene.worker(10)
        ids = await scene.submit(5)
        await scene.passes()
        entries = await scene.publisher.read_all(QUEUE, 10)
        await scene.raw("XDEL", STREAM, entries[2].receipt)
        await scene.passes(1, seconds=0.1)
        assert ids[2] not in await scene.entries()
        await scene.passes(3, seconds=scene.settings.republish_seconds)
        assert sorted(await scene.entries()) == ids

    async def test_a_destroyed_group_is_made_again_where_workers_have_read_nothing(self, scene: Scene) -> None:
        me = await scene.worker(10)
        ids = await scene.submit(5)
        await scene.passes()
        await scene.raw("XGROUP", "DESTROY", STREAM, keys.GROUP)
        await scene.passes()
        reader = subscriber(scene.settings, me, [QUEUE])
        assert [one.job_id for one in await reader.read(10, 0.1)] == ids
        await reader.close()

    async def test_a_row_that_a_worker_acknowledges_away_is_published_again_ever_more_rarely(
        self, scene: Scene
    ) -> None:
        me = await scene.worker(10)
        await scene.submit(1)
        reader = subscriber(scene.settings, me, [QUEUE])
        republish = scene.settings.republish_seconds
        began = scene.clock.now
        at: list[float] = []
        for _ in range(200):
            await scene.passes(1, seconds=republish / 8)
            taken = await reader.read(1, 0.1) if await scene.entries() else []
            at += [(scene.clock.now - began) / republish] * len(taken)
            await reader.acknowledge(taken)
        await reader.close()
        gaps = [later - earlier for earlier, later in pairwise(at)]
        assert gaps == pytest.approx([1, 2, 4, 8], abs=0.5)

    async def test_entries_waiting_for_busy_workers_are_not_published_again(self, scene: Scene) -> None:
        await scene.worker(10)
        await scene.submit(5)
        await scene.passes(30, seconds=scene.settings.republish_seconds)
        assert await scene.added() == 5

    async def test_entries_delivered_to_nobody_are_replaced(self, scene: Scene) -> None:
        me = await scene.worker(10)
        ids = await scene.submit(3)
        await scene.passes()
        reader = subscriber(scene.settings, me, [QUEUE])
        await reader.read(3, 0.1)
        await scene.raw("XGROUP", "DELCONSUMER", STREAM, keys.GROUP, str(me))
        await scene.passes(3, seconds=scene.settings.republish_seconds)
        assert [one.job_id for one in await reader.read(3, 0.1)] == ids
        await reader.close()

    async def test_what_a_dead_worker_had_read_but_not_claimed_is_published_at_once(self, scene: Scene) -> None:
        dead = await scene.worker(10)
        await scene.worker(10)
        ids = await scene.submit(3)
        await scene.passes()
        reader = subscriber(scene.settings, dead, [QUEUE])
        old = [one.receipt for one in await reader.read(3, 0.1)]
        await reader.close()
        await scene.session.execute("UPDATE workers SET left_at = now(), settled_at = heartbeat_at WHERE id = $1", dead)
        await scene.passes(2, seconds=0.3)
        entries = await scene.publisher.read_all(QUEUE, 10)
        assert [one.job_id for one in entries] == ids
        assert not {one.receipt for one in entries} & set(old)
        assert await scene.publisher.consumers(QUEUE) == []

    async def test_what_nobody_serves_any_more_is_tidied_up(self, scene: Scene) -> None:
        stranger = keys.stream("gone")
        await scene.raw("XADD", stranger, "*", "x", "y")
        await scene.raw("XGROUP", "CREATE", stranger, keys.GROUP, "0", "MKSTREAM")
        await scene.raw("XREADGROUP", "GROUP", keys.GROUP, str(uuid4()), "STREAMS", stranger, ">")
        await scene.passes(3, seconds=scene.settings.republish_seconds)
        assert await scene.raw("EXISTS", stranger) == 0
