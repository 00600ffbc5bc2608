"""A process's heart beats on, and holds the lock that says so, whatever happens to its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from app.settings import Settings
from app.store.database import Database, Session, connect
from app.store.fleet import LOCK_CLASS, Beat, Incarnation
from tests.integration.world import World
from workers import heart
from workers.heart import LOOKS_IN_DOUBT, Answer, Heart

ENOUGH_SECONDS = 15
MINE = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'outlast heartbeat'"
CUT_THE_HEARTS_SESSION = f"SELECT pg_terminate_backend(pid, 5000) FROM ({MINE}) mine"
LOCK_IS_MINE = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objid = $2 AND granted "
    f"AND pid IN ({MINE})"
)


@dataclass
class Ward:
    """A heart that beats, and a session to look at it."""

    heart: Heart
    session: Session
    answers: list[Answer] = field(default_factory=list)

    async def beats(self, count: int = 1) -> None:
        for _ in range(count):
            await asyncio.wait_for(self.heart.next_answer(), ENOUGH_SECONDS)

    async def holds_its_lock(self, lock_key: int) -> bool:
        return bool(await self.session.fetchval(LOCK_IS_MINE, LOCK_CLASS, lock_key))


@pytest.fixture
async def ward(settings: Settings, db: Database) -> AsyncIterator[Ward]:
    answers: list[Answer] = []
    me = Incarnation(uuid4(), "worker", ["default"], [], 1, "pg")
    ward = Ward(Heart(settings, me, answers.append), await connect(settings, "test"), answers)
    ward.heart.start()
    await ward.beats()
    yield ward
    await ward.heart.stop()
    await ward.session.close()


async def test_a_heart_takes_its_lock_again_from_a_session_that_ends_late(ward: Ward, settings: Settings) -> None:
    """A session may be gone for us and go on for the server: until that ends it, it holds the lock."""
    lock_key: int = await ward.session.fetchval("SELECT lock_key FROM workers")
    assert await ward.holds_its_lock(lock_key)
    late = await connect(settings, "test, a session that ends late")
    try:
        taking = asyncio.create_task(late.execute("SELECT pg_advisory_lock($1, $2)", LOCK_CLASS, lock_key))
        while not await ward.session.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
        await ward.session.execute(CUT_THE_HEARTS_SESSION)
        await taking
        await ward.beats(2)
        assert not await ward.holds_its_lock(lock_key)
    finally:
        late.terminate()

    async with asyncio.timeout(ENOUGH_SECONDS):
        while not await ward.holds_its_lock(lock_key):
            await ward.beats()


async def test_a_heart_outlives_what_nobody_thought_of(ward: Ward) -> None:
    await ward.session.execute("CREATE SEQUENCE tries")
    await ward.session.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('tries'); "
        "RAISE EXCEPTION 'whatever'; END $$"
    )
    await ward.session.execute("CREATE TRIGGER refuse BEFORE UPDATE ON workers FOR EACH ROW EXECUTE FUNCTION refuse()")
    while not await ward.session.fetchval("SELECT is_called FROM tries"):
        await asyncio.sleep(0.01)
    await ward.session.execute("DROP TRIGGER refuse ON workers")

    await ward.beats(2)


async def test_a_heart_asks_for_what_nobody_knows_of_seldom_when_that_takes_long_and_at_once_when_in_doubt(
    settings: Settings, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a snapshot held open every lease that ever was is read for it."""
    monkeypatch.setattr(heart, "AT_MOST_A_HUNDREDTH", 1e9)
    jobs = [job.id for job in await world.run(2)]
    answers: list[Answer] = []
    me = Incarnation(uuid4(), "worker", ["default"], [], 1, "pg")
    beating = Heart(settings, me, answers.append, mine=lambda: jobs)
    beating.start()
    try:
        for _ in range(3):
            await asyncio.wait_for(beating.next_answer(), ENOUGH_SECONDS)
        async with world.db.session() as connection:
            await connection.execute("UPDATE leases SET worker_id = $1 WHERE job_id = $2", me.id, jobs[0])
        beating.doubt()
        for _ in range(LOOKS_IN_DOUBT + 3):
            await asyncio.wait_for(beating.next_answer(), ENOUGH_SECONDS)
    finally:
        await beating.stop()
    asked = [one.beat.of for one in answers]
    assert asked[:2] == [None, frozenset(jobs)]
    assert asked.count(None) == 1 + LOOKS_IN_DOUBT
    assert answers[-1].beat == Beat(known=True, leases=frozenset({(jobs[0], 1)}), of=frozenset(jobs))


async def test_an_answer_that_is_asked_for_does_not_wait_for_the_next_beat(settings: Settings) -> None:
    """A claim that failed waits for one: a cut session must not cost a worker a whole heartbeat."""
    rare = {"heartbeat_seconds": 4 * ENOUGH_SECONDS, "suspect_seconds": 5 * ENOUGH_SECONDS}
    seldom = settings.model_copy(update={**rare, "lease_seconds": 6 * ENOUGH_SECONDS})
    answers: list[Answer] = []
    heart = Heart(seldom, Incarnation(uuid4(), "worker", ["default"], [], 1, "pg"), answers.append)
    heart.start()
    try:
        for _ in range(3):
            await asyncio.wait_for(heart.next_answer(), ENOUGH_SECONDS)
    finally:
        await heart.stop()
    assert len(answers) >= 3
