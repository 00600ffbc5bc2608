"""What time does to the outbox and to what stands around it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from app.store.relay import OutboxUpkeep
from tests.integration.scene import QUEUE, Scene


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
