"""What the relay's leader promises, pass by pass: every waiting row has one live entry, and what is lost comes back."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest

from app.domain.errors import BrokerAway, DatabaseAway
from app.settings import Settings
from app.store import fleet
from app.store.database import Database, Session, connect
from app.store.fleet import Fleet, Incarnation
from app.store.relay import Leadership, OutboxUpkeep
from app.transport import keys
from app.transport.base import Delivery
from app.transport.connect import publisher, subscriber
from tests.integration.raw_redis import RawRedis
from workers.dispatcher import Dispatcher

KIND = "test.job"
QUEUE = "default"
STREAM = keys.stream(QUEUE)


class Clock:
    """Monotonic seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds


class Scene:
    """One leader, its outbox and its broker."""

    def __init__(self, settings: Settings, db: Database, leadership: Leadership, session: Session, raw: RawRedis):
        self.settings = settings
        self.db = db
        self.session = session
        self.raw = raw
        self.clock = Clock()
        self.publisher = publisher(settings)
        self.leadership = leadership
        self.leader = self.new_leader(leadership)

    def new_leader(self, leadership: Leadership) -> Dispatcher:
        return Dispatcher(
            self.settings, leadership, self.publisher, Fleet(self.db), OutboxUpkeep(self.db), clock=self.clock
        )

    async def submit(
        self, count: int = 1, *, queue: str = QUEUE, kind: str = KIND, priority: int = 5, solo: bool = False
    ) -> list[UUID]:
        """Outbox rows that are due, in the order of their ids."""
        rows = await self.session.fetch(
            "INSERT INTO outbox (job_id, kind, queue, priority, timeout_seconds, max_retries, solo) "
            "SELECT outlast_uuid_v7(), $1, $2, $3, 60, 2, $4 FROM generate_series(1, $5) RETURNING job_id",
            kind,
            queue,
            priority,
            solo,
            count,
        )
        return sorted(row["job_id"] for row in rows)

    async def worker(
        self, slots: int, *, queues: Sequence[str] = (QUEUE,), kinds: Sequence[str] = (KIND,), transport: str = "redis"
    ) -> UUID:
        """A live worker's row; its lock is held by this scene's session."""
        me = Incarnation(uuid4(), "worker", queues, kinds, slots, transport)
        await fleet.register(self.session, me)
        self.clock.pass_seconds(1)  # the leader sees it in the next pass
        return me.id

    async def claimed(self, deliveries: Sequence[Delivery]) -> None:
        """The rows leave the outbox, as a claim does it."""
        await self.session.execute("DELETE FROM outbox WHERE job_id = ANY($1)", [one.job_id for one in deliveries])

    async def passes(self, count: int = 3, *, seconds: float = 0.05) -> int:
        moved = 0
        for _ in range(count):
            self.clock.pass_seconds(seconds)
            moved += await self.leader.run_once()
        return moved

    async def entries(self, queue: str = QUEUE) -> list[UUID]:
        reader = publisher(self.settings)
        try:
            return [one.job_id for one in await reader.read_all(queue, 10_000)]
        finally:
            await reader.close()

    async def added(self, queue: str = QUEUE) -> int:
        """Entries ever added to the stream there is."""
        facts = await self.raw("XINFO", "STREAM", keys.stream(queue))
        return dict(zip(facts[::2], facts[1::2], strict=True))["entries-added"]


@pytest.fixture
async def scene(settings: Settings, db: Database) -> AsyncIterator[Scene]:
    session = await connect(settings, "test")
    leadership = await Leadership.open(settings)
    assert await leadership.try_lead()
    raw = RawRedis(settings)
    made = Scene(settings, db, leadership, session, raw)
    yield made
    await made.publisher.close()
    await raw.close()
    leadership.close()
    await session.close()


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


class TestLoss:
    @pytest.mark.parametrize(
        "loss", [("FLUSHALL",), ("DEL", STREAM), ("SET", STREAM, "x"), ("XTRIM", STREAM, "MAXLEN", "0")]
    )
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
            taken = await reader.read(1, 0.001)
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


class TestUpkeep:
    async def test_rows_become_due_when_their_time_has_come(self, scene: Scene) -> None:
        ids = await scene.submit(3)
        await scene.session.execute(
            "UPDATE outbox SET deferred = true, due_at = clock_timestamp() + $2 WHERE job_id = ANY($1)",
            ids[:2],
            timedelta(hours=1),
        )
        await scene.session.execute("UPDATE outbox SET due_at = now() WHERE job_id = $1", ids[0])
        upkeep = OutboxUpkeep(scene.db)
        assert await upkeep.promote_due(10) == Counter({QUEUE: 1})
        assert await upkeep.promote_due(10) == Counter()

    async def test_a_deadline_that_passes_while_waiting_makes_a_dead_letter(self, scene: Scene) -> None:
        ids = await scene.submit(2)
        await scene.session.execute("UPDATE outbox SET deadline = now() WHERE job_id = $1", ids[0])
        assert await OutboxUpkeep(scene.db).expire(10) == 1
        dead = await scene.session.fetchrow("SELECT job_id, reason, error, fingerprint FROM dead_letters")
        assert dead is not None
        assert (dead["job_id"], dead["reason"]) == (ids[0], "expired")
        assert await scene.session.fetchval("SELECT count(*) FROM outbox") == 1

    async def test_a_kind_that_no_worker_of_its_queue_knew_for_long_is_buried(self, scene: Scene) -> None:
        await scene.worker(1)
        known = await scene.submit(1)
        unknown = await scene.submit(1, kind="test.gone")
        unattended = await scene.submit(1, queue="other", kind="test.gone")
        fresh = await scene.submit(1, kind="test.gone")
        await scene.session.execute(
            "UPDATE outbox SET due_at = now() - interval '8 days' WHERE job_id <> ALL($1)", fresh
        )
        upkeep = OutboxUpkeep(scene.db)
        assert await upkeep.bury_unknown(7, 10) == 1
        assert await upkeep.bury_unknown(7, 10) == 0
        assert (
            await scene.session.fetchval("SELECT job_id FROM dead_letters WHERE reason = 'unknown_kind'") == unknown[0]
        )
        left = {row["job_id"] for row in await scene.session.fetch("SELECT job_id FROM outbox")}
        assert left == {*known, *unattended, *fresh}

    async def test_partitions_are_made_ahead_once(self, scene: Scene) -> None:
        upkeep = OutboxUpkeep(scene.db)
        await upkeep.make_partitions(5)
        assert await upkeep.make_partitions(7) == 8
        assert await upkeep.make_partitions(7) == 0

    async def test_processes_long_ended_are_pruned_and_others_kept(self, scene: Scene) -> None:
        old, unsettled = await scene.worker(1), await scene.worker(1)
        await scene.session.execute("UPDATE workers SET heartbeat_at = now() - interval '200 days'")
        await scene.session.execute("UPDATE workers SET settled_at = heartbeat_at WHERE id = $1", old)
        assert await OutboxUpkeep(scene.db).prune_workers(180) == 1
        assert await scene.session.fetchval("SELECT id FROM workers") == unsettled
