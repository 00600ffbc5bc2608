"""What the relay's leader promises, pass by pass: every waiting row has one live entry, whoever leads."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID

import pytest

from app.domain.errors import BrokerAway, DatabaseAway
from app.settings import Settings
from app.store.database import connect
from app.store.fleet import Fleet
from app.store.relay import Leadership, OutboxUpkeep
from app.transport.connect import publisher, subscriber
from tests.integration.scene import KIND, QUEUE, Scene
from workers.relaying.dispatcher import Dispatcher


class TestPublishing:
    async def test_first_priority_first_and_then_the_order_of_ids(self, scene: Scene) -> None:
        await scene.worker(50)
        last = await scene.submit(2, priority=9)
        middle = await scene.submit(2)
        first = await scene.submit(2, priority=0)
        await scene.passes(1)
        assert await scene.entries() == first + middle + last

    async def test_a_stream_holds_twice_the_slots_and_no_more(self, scene: Scene) -> None:
        await scene.worker(10)
        ids = await scene.submit(100)
        await scene.passes(5)
        assert await scene.entries() == ids[:20]

    async def test_a_first_priority_job_passes_everything_that_is_not_in_the_stream(self, scene: Scene) -> None:
        me = await scene.worker(1)
        await scene.submit(50)
        await scene.passes()
        urgent = await scene.submit(1, priority=0)
        reader = subscriber(scene.settings, me, [QUEUE])
        handed_over: list[UUID] = []
        for _ in range(4):
            taken = await reader.read(1, 0.1)
            await scene.claimed(taken)
            await reader.acknowledge(taken)
            handed_over += [one.job_id for one in taken]
            await scene.passes(1)
        await reader.close()
        assert handed_over.index(urgent[0]) <= 2

    async def test_no_fault_means_one_entry_a_row_while_workers_take_them(self, scene: Scene) -> None:
        me = await scene.worker(20)
        ids = await scene.submit(300)
        reader = subscriber(scene.settings, me, [QUEUE])
        seen: Counter[UUID] = Counter()
        while sum(seen.values()) < 300:
            await scene.passes(1, seconds=0.01)
            taken = await reader.read(20, 0.05)
            seen.update(one.job_id for one in taken)
            await scene.claimed(taken)
            await reader.acknowledge(taken)
        await scene.passes(5, seconds=0.3)
        await reader.close()
        assert seen == Counter(ids)
        assert await scene.added() == 300
        assert await scene.entries() == []

    async def test_a_queue_without_workers_gets_a_little_and_delays_nobody(self, scene: Scene) -> None:
        await scene.worker(5)
        await scene.submit(100, queue="a-nobody")
        ids = await scene.submit(3)
        await scene.passes(1)
        assert await scene.entries() == ids
        assert len(await scene.entries("a-nobody")) == 2

    async def test_rows_that_wait_for_their_time_or_their_last_start_are_not_published(self, scene: Scene) -> None:
        await scene.worker(5)
        await scene.submit(1, solo=True)
        later = await scene.submit(1)
        await scene.session.execute("UPDATE outbox SET deferred = true WHERE job_id = $1", later[0])
        await scene.passes()
        assert await scene.entries() == []

    async def test_a_kind_that_one_worker_of_the_queue_does_not_know_stays_out_of_the_stream(
        self, scene: Scene
    ) -> None:
        await scene.worker(5, kinds=[KIND, "test.new"])
        old = await scene.worker(5)
        new_kind = await scene.submit(1, kind="test.new")
        ids = await scene.submit(1)
        await scene.passes()
        assert await scene.entries() == ids
        await Fleet(scene.db).leave(old, "test")
        await scene.passes(seconds=0.3)
        assert await scene.entries() == ids + new_kind

    async def test_workers_that_claim_without_a_broker_count_for_nothing_here(self, scene: Scene) -> None:
        await scene.worker(100, transport="pg", kinds=[])
        await scene.submit(10)
        await scene.passes()
        assert len(await scene.entries()) == 2

    async def test_rows_that_become_visible_after_later_ones_are_found(self, scene: Scene, settings: Settings) -> None:
        await scene.worker(1_000)
        expected: list[UUID] = []
        for round_ in range(30):
            late = await connect(settings, "test late")
            transaction = late.transaction()
            await transaction.start()
            slow = await late.fetchval(
                "INSERT INTO outbox (job_id, kind, queue, priority, timeout_seconds, max_retries) "
                "VALUES (outlast_uuid_v7(), $1, 'default', 5, 60, 2) RETURNING job_id",
                KIND,
            )
            expected += await scene.submit(1)
            await scene.passes(1, seconds=0.001)
            await (transaction.rollback() if round_ % 3 == 0 else transaction.commit())
            expected += [] if round_ % 3 == 0 else [slow]
            await late.close()
            await scene.passes(2, seconds=0.05)
        assert sorted(await scene.entries()) == sorted(expected)
        assert await scene.added() == len(expected)

    async def test_an_old_row_that_comes_back_is_published_behind_the_low_water_mark(self, scene: Scene) -> None:
        await scene.worker(50)
        old = UUID("01900000-0000-7000-8000-000000000000")
        await scene.submit(5)
        await scene.passes()
        await scene.session.execute(
            "INSERT INTO outbox (job_id, kind, queue, priority, timeout_seconds, max_retries, attempt) "
            "VALUES ($1, $2, 'default', 5, 60, 2, 7)",
            old,
            KIND,
        )
        await scene.passes(1, seconds=0.001)
        scene.leader.look_again()
        await scene.passes(1, seconds=0.001)
        assert old in await scene.entries()

    async def test_many_queues_are_all_served(self, scene: Scene) -> None:
        for number in range(60):
            await scene.submit(1, queue=f"q{number}")
        await scene.passes(4, seconds=0.1)
        assert {queue for queue in await scene.publisher.queues() if await scene.entries(queue)} == {
            f"q{number}" for number in range(60)
        }


class TestLeading:
    async def test_a_new_leader_repeats_nothing(self, scene: Scene) -> None:
        await scene.worker(10)
        await scene.submit(15)
        await scene.passes()
        scene.leader = scene.new_leader(scene.leadership)
        await scene.passes(5, seconds=0.3)
        assert await scene.added() == 15

    async def test_two_that_both_believe_to_lead_publish_nothing_twice(self, scene: Scene, settings: Settings) -> None:
        await scene.worker(200)
        other_session = await Leadership.open(settings)
        other_publisher = publisher(settings)
        other = Dispatcher(
            settings, other_session, other_publisher, Fleet(scene.db), OutboxUpkeep(scene.db), clock=scene.clock
        )
        ids: list[UUID] = []
        for _ in range(20):
            ids += await scene.submit(10)
            scene.clock.pass_seconds(0.05)
            await asyncio.gather(scene.leader.run_once(), other.run_once())
        await scene.passes(2, seconds=0.1)
        assert sorted(await scene.entries()) == sorted(ids)
        assert await scene.added() == len(ids)
        await other_publisher.close()
        other_session.close()

    async def test_only_one_session_leads_and_its_end_lets_the_next(self, scene: Scene, settings: Settings) -> None:
        standby = await Leadership.open(settings)
        assert not await standby.try_lead()
        scene.leadership.close()
        async with asyncio.timeout(5):
            while not await standby.try_lead():
                await asyncio.sleep(0.01)
        with pytest.raises(DatabaseAway):
            await scene.passes(1)
        standby.close()

    async def test_a_frozen_leader_is_replaced(self, scene: Scene, settings: Settings) -> None:
        scene.leadership.close()
        frozen = await Leadership.open(settings, idle_seconds_max=0.2)
        standby = await Leadership.open(settings)
        async with asyncio.timeout(5):
            while not await frozen.try_lead():
                await asyncio.sleep(0.01)
            for _ in range(10):
                await frozen.hold()
                assert not await standby.try_lead()
            while not await standby.try_lead():
                await asyncio.sleep(0.01)
        with pytest.raises(DatabaseAway):
            await frozen.hold()
        standby.close()

    async def test_a_broker_that_refuses_is_away_and_nothing_is_lost_by_it(self, scene: Scene) -> None:
        await scene.worker(10)
        ids = await scene.submit(10)
        await scene.raw("CONFIG", "SET", "maxmemory", "1")
        try:
            for _ in range(3):
                with pytest.raises(BrokerAway):
                    await scene.passes(1)
        finally:
            await scene.raw("CONFIG", "SET", "maxmemory", "0")
        await scene.passes(2)
        assert await scene.entries() == ids
        assert await scene.added() == 10
