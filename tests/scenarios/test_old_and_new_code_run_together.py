"""A schema is brought up to date while the old code still runs on it, and both work until the old one is gone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from pydantic import SecretStr

from app.settings import Settings
from app.store.database import Database, connect
from app.store.revision import HEAD, REVISIONS
from tests.client import journal_of
from tests.databases import in_database
from tests.previous import CODE, unpack_previous
from tests.processes import Process, Stack

pytestmark = pytest.mark.timeout(300)

HANDLERS = ["tests.handlers.steps"]
STEPS = ["one", "two"]
PER_SECOND = 40
STAGE_SECONDS = 2.0  # of load, between two steps of the roll-out

RECORD = """
SELECT (SELECT count(*) FROM outcomes WHERE state = 'done') AS done,
  (SELECT count(*) FROM outbox) + (SELECT count(*) FROM leases) + (SELECT count(*) FROM dead_letters) AS elsewhere,
  (SELECT coalesce(max(crashes + retries), 0) FROM outcomes) AS charged,
  (SELECT coalesce(max(calls), 0) FROM effects) AS calls
"""


@pytest.fixture(scope="module")
def old_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it was before the newest revision of the schema."""
    folder = tmp_path_factory.mktemp("old") / "code"
    if not unpack_previous(folder, [*CODE, "tests"]):
        pytest.skip("SKIPPED, NOT SHOWN: old and new code together; this takes git and the history of the project")
    return folder


@pytest.fixture
async def empty(settings: Settings, postgres_url: str) -> AsyncIterator[Settings]:
    """A database without anything in it."""
    name = f"test_{uuid4().hex}"
    server = await connect(settings.model_copy(update={"database_url": SecretStr(postgres_url)}), "test")
    await server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield settings.model_copy(update={"database_url": SecretStr(in_database(postgres_url, name))})
    await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await server.close()


class Load:
    """Submits steadily, each job with a key of its own, to whichever API answers. `urls` may change meanwhile."""

    def __init__(self, journal: Path, urls: list[str]) -> None:
        self.urls = urls
        self.submitted = 0
        self._stopping = False
        self._journal = journal
        self._http = httpx.AsyncClient(timeout=5, verify=False)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Returns once the submit under way is answered. Raises what ended the load."""
        self._stopping = True
        await self._task
        await self._http.aclose()

    def raise_failure(self) -> None:
        if self._task.done():
            self._task.result()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for nth in itertools.count():
            if self._stopping:
                return
            await asyncio.sleep(max(0.0, began + nth / PER_SECOND - loop.time()))
            await self._submit(str(uuid4()))
            self.submitted += 1

    async def _submit(self, key: str) -> None:
        """A refused connection is what a load balancer sees of an API that was stopped; a caller asks again."""
        job = {"kind": "test.steps", "input": {"journal": str(self._journal), "steps": STEPS}}
        refused: list[str] = []
        for url in [*self.urls, *self.urls]:
            try:
                answer = await self._http.post(f"{url}/v1/jobs", json=job, headers={"Idempotency-Key": key})
            except httpx.TransportError as error:
                refused.append(repr(error))
                continue
            if answer.is_success:
                return
            refused.append(f"{answer.status_code} {answer.text[:200]}")
        raise AssertionError(f"a submit failed everywhere: {refused}")


async def test_a_release_rolls_out_over_its_schema_under_load(empty: Settings, old_code: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with Stack(empty, tmp_path / "old-logs", old_code) as old, Stack(empty, tmp_path / "new-logs") as new:
        assert old.run("migrate").returncode == 0
        db = await Database.open(empty, "test", size_max=1)
        assert await _revision(db) == REVISIONS[-2]
        olds = [await asyncio.to_thread(old.api), old.relay(), old.worker(HANDLERS)]
        for process in olds[1:]:
            await _heard(db, process, 1)
        load = Load(journal, [old.api_url])
        await _some(load)

        migrated = await asyncio.to_thread(new.run, "migrate", "--handlers", *HANDLERS)
        assert (migrated.returncode, await _revision(db)) == (0, HEAD), migrated.stderr
        await _some(load)  # old code alone on the new schema

        news = [await asyncio.to_thread(new.api), new.relay(), new.worker(HANDLERS)]
        load.urls = [old.api_url, new.api_url]
        for process in news[1:]:
            await _heard(db, process, 2)
        await _some(load)  # both at once

        for process in olds:
            assert await asyncio.to_thread(process.stop) == 0, process.log_tail()
        await _some(load)  # new code alone
        await load.stop()
        record = await _settled(db, load.submitted)
        await db.close()
        assert record == {"done": load.submitted, "elsewhere": 0, "charged": 0, "calls": 1}
        starts = journal_of(journal).lines("start")
        assert len(starts) == len({line[0] for line in starts}) == load.submitted
        audit = new.run("audit")
        assert audit.returncode == 0, audit.stdout


async def _some(load: Load) -> None:
    """Some seconds of load go by."""
    loop = asyncio.get_running_loop()
    end, before = loop.time() + STAGE_SECONDS, load.submitted
    while loop.time() < end or load.submitted < before + PER_SECOND:
        load.raise_failure()
        await asyncio.sleep(0.05)


async def _heard(db: Database, process: Process, count: int) -> None:
    """So many processes of its role are in the fleet."""
    async with asyncio.timeout(60):
        while count > await _of_role(db, process.name):
            assert process.alive(), process.log_tail()
            await asyncio.sleep(0.05)


async def _revision(db: Database) -> str:
    async with db.session() as connection:
        return await connection.fetchval("SELECT version_num FROM alembic_version")


async def _settled(db: Database, jobs: int) -> dict[str, int]:
    async with asyncio.timeout(60), db.session() as connection:
        while True:
            row = await connection.fetchrow(RECORD)
            if row is not None and row["done"] + row["elsewhere"] >= jobs and not row["elsewhere"]:
                return dict(row)
            await asyncio.sleep(0.1)


async def _of_role(db: Database, role: str) -> int:
    async with db.session() as connection:
        return await connection.fetchval("SELECT count(*) FROM workers WHERE role = $1 AND left_at IS NULL", role)
