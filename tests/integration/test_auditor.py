"""The leader looks at young jobs by itself, and the metrics tell what it found and when."""

from __future__ import annotations

import asyncio
import time

from httpx import AsyncClient

from app.settings import Settings
from tests.integration.reading import client_of
from tests.integration.world import World
from tests.processes import Stack, wait_until
from workers.relaying.auditor import YOUNG_CHECKS, Auditor


async def metrics(client: AsyncClient) -> dict[str, float]:
    lines = (await client.get("/metrics")).text.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if line.startswith("outlast_audit"))}


async def test_what_the_leader_found_broken_is_in_the_metrics_until_it_is_mended(
    world: World, settings: Settings
) -> None:
    async with client_of(settings) as client:
        assert await metrics(client) == {}, "nobody has looked yet"
        await world.submit(2)
        await world.execute("CREATE TABLE kept AS SELECT * FROM outbox")
        await world.execute("DELETE FROM outbox")
        assert len(await Auditor(world.db).run_once()) == 2
        found = await metrics(client)
        assert found['outlast_audit_findings{invariant="conservation"}'] == 2
        assert abs(found["outlast_audit_timestamp_seconds"] - time.time()) < 60
        await world.execute("INSERT INTO outbox SELECT * FROM kept")
        assert await Auditor(world.db).run_once() == []
        found = await metrics(client)
        assert [found[f'outlast_audit_findings{{invariant="{check}"}}'] for check in (*YOUNG_CHECKS, "leases")] == (
            [0] * (len(YOUNG_CHECKS) + 1)
        )


async def test_the_leader_looks_at_young_jobs_and_at_every_lease(world: World) -> None:
    old = "outlast_uuid_floor(now() - interval '1 hour')"
    await world.run()
    await world.execute(
        "INSERT INTO jobs (id, kind, queue, priority, input, max_retries, timeout_seconds) "
        f"VALUES ({old}, 'test.job', 'default', 5, '{{}}', 2, 60)"
    )
    assert await Auditor(world.db).run_once() == [], "a job without a home, of an hour ago"
    await world.execute(f"UPDATE leases SET job_id = {old}, worker_id = gen_random_uuid()")
    assert {one.check for one in await Auditor(world.db).run_once()} == {"conservation", "leases"}


async def test_a_relay_that_leads_looks(world: World, stack: Stack) -> None:
    await world.submit()
    await world.execute("DELETE FROM outbox")
    relay = stack.relay()
    await asyncio.to_thread(wait_until, lambda: "invariant_broken" in relay.stderr, 30, what="the finding")
