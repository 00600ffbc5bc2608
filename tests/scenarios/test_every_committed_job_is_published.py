"""What is committed gets its entry, in whatever order and between whatever else, and nothing else gets one."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from app.domain.errors import BrokerAway, DatabaseAway
from app.domain.request import JobRequest
from app.settings import Settings
from app.store import kinds
from app.store.database import Database
from app.transport import keys
from app.transport.connect import subscriber
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitter
from tests.fundamentals.scale import scaled
from tests.integration.listening import ANY
from tests.integration.scene import QUEUE, STREAM, Scene
from tests.integration.world import World
from tests.scenarios import submit_gate

PAIRS = scaled(40, 200)
LAST = 2**64 - 1  # of a stream's ids, both halves

PROMPT = JobRequest(kind=ANY.name, input=1)
HELD = JobRequest(kind=ANY.name, input=1, timeout_seconds=61)
ONLY_HELD = """
DROP TRIGGER submit_gate ON outbox;
CREATE TRIGGER submit_gate BEFORE INSERT ON outbox
  FOR EACH ROW WHEN (NEW.timeout_seconds = 61) EXECUTE FUNCTION submit_gate();
"""


@pytest.fixture
async def submitters(settings: Settings, db: Database) -> tuple[Submitter, Submitter]:
    """Of two API processes; what is `HELD` waits at the gate when that is closed."""
    await kinds.publish(db, [ANY])
    await submit_gate.install(db)
    async with db.session() as connection:
        await connection.execute(ONLY_HELD)
    return Submitter(db, Catalog(db), settings), Submitter(db, Catalog(db), settings)


async def test_jobs_that_commit_in_another_order_than_their_ids_are_published_by_the_next_look(
    scene: Scene, submitters: tuple[Submitter, Submitter], settings: Settings, db: Database
) -> None:
    """A reader that kept the last id it had seen passed over a lower one still in flight, and never came back."""
    await scene.worker(2 * PAIRS, kinds=[ANY.name])
    first, second = submitters
    committed: list[UUID] = []
    for number in range(PAIRS):
        async with submit_gate.closed(settings):
            late = asyncio.create_task(first.submit(HELD))
            await submit_gate.until_blocked(db, 1)
            committed.append((await second.submit(PROMPT)).job.id)
            await scene.passes(1, seconds=0.025)
            assert await scene.added() == len(committed)
            await scene.session.execute("DELETE FROM outbox")  # as claims do it, and the marks move on
            await scene.passes(2, seconds=0.05)
            if number % 3 == 0:
                await submit_gate.end_session_at_gate(db)
                with pytest.raises(DatabaseAway):
                    await late
        if number % 3:
            committed.append((await late).job.id)
            assert committed[-1] < committed[-2]
        await scene.passes(2, seconds=0.05)
        assert await scene.added() == len(committed)
    assert sorted(await scene.entries()) == sorted(committed)


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_nothing_is_published_before_its_commit_or_after_its_rollback(
    scene: Scene, submitters: tuple[Submitter, Submitter], settings: Settings, db: Database, end: str
) -> None:
    """A job was announced from inside its transaction: a worker looked for it before it was there."""
    await scene.worker(10, kinds=[ANY.name])
    async with submit_gate.closed(settings):
        submitting = asyncio.create_task(submitters[0].submit(HELD))
        await submit_gate.until_blocked(db, 1)
        await scene.passes(60, seconds=0.05)
        assert await scene.added() == 0
        if end == "rollback":
            await submit_gate.end_session_at_gate(db)
            with pytest.raises(DatabaseAway):
                await submitting
    expected = [(await submitting).job.id] if end == "commit" else []
    await scene.passes(20, seconds=0.5)
    assert await scene.entries() == expected
    assert await scene.added() == len(expected)


async def test_a_worker_that_is_told_of_a_job_before_its_commit_does_not_lose_it(scene: Scene, world: World) -> None:
    """A worker took an event whose job it could not see yet for a stale one, and dropped it for good."""
    me = await scene.worker(10)
    reader = subscriber(scene.settings, me, [QUEUE])
    transaction = scene.session.transaction()
    await transaction.start()
    [job] = await scene.submit()
    await scene.raw("XADD", STREAM, "*", keys.JOB_FIELD, str(job), keys.ATTEMPT_FIELD, "0")
    async with scene.db.session() as elsewhere:
        assert await elsewhere.fetchval("SELECT count(*) FROM outbox") == 0

    early = await reader.read(1, 1)
    assert await world.claim([one.job_id for one in early]) == []
    await reader.acknowledge(early)
    await transaction.commit()
    await scene.passes(2)

    assert [one.job_id for one in await reader.read(1, 1)] == [job]
    await reader.close()


async def test_rows_that_cannot_be_published_keep_no_other_waiting(scene: Scene) -> None:
    """One row that no broker would take stood first in every batch, and nothing behind it was ever sent."""
    await scene.worker(100)
    await scene.raw("SET", keys.stream("a-taken"), "by a stranger")
    await scene.raw("XADD", keys.stream("a-used-up"), f"{LAST}-{LAST}", "x", "y")
    await scene.submit(5, kind="test.nobody-knows", priority=0)
    for queue in ("a-nobody", "a-taken", "a-used-up"):
        await scene.submit(5, queue=queue, priority=0)
    good = await scene.submit(50)

    for _ in range(3):
        await _pass_or_be_refused(scene)

    assert await scene.entries() == good
    assert await scene.session.fetchval("SELECT count(*) FROM outbox") == 70
    for _ in range(4):
        scene.clock.pass_seconds(1)
        await _pass_or_be_refused(scene)
    assert [len(await scene.entries(queue)) for queue in ("a-nobody", "a-taken", "a-used-up")] == [2, 2, 2]


async def test_what_a_broker_refused_from_the_middle_of_a_batch_on_is_published_later(scene: Scene) -> None:
    """Some replies of a batch were errors; every row of it was taken for sent."""
    await scene.worker(10)
    await scene.raw("XADD", STREAM, f"{LAST}-{LAST - 3}", "x", "y")
    ids = await scene.submit(10)

    refused = [await _pass_or_be_refused(scene) for _ in range(4)]

    assert refused.count(True) == 1
    assert await scene.entries() == ids
    assert await scene.added() == 1 + 3 + 10


async def _pass_or_be_refused(scene: Scene) -> bool:
    try:
        await scene.passes(1, seconds=0.1)
    except BrokerAway:
        return True
    return False
