"""Embedded servers: one owner per folder, the same address again, nothing left of a killed owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from app.store.database import Database
from tests.processes import ROOT, is_running, wait_until
from workers.dev.embedded import Server
from workers.dev.failures import ServerFailed
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

OWNER = """
import signal, sys
from pathlib import Path
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis
folder = Path(sys.argv[1])
servers = [Postgres(folder).start(), Redis(folder).start()]
print(*(server.process.pid for server in servers), flush=True)
signal.pause()
"""


async def test_a_fixture_database_is_migrated_and_empty(db: Database) -> None:
    async with db.session() as connection:
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 0


async def test_a_server_comes_back_on_its_address_with_its_data(tmp_path: Path) -> None:
    with Postgres(tmp_path) as first:
        url = first.url
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE kept (value int)")
        await connection.close()
    with Postgres(tmp_path) as second:
        assert second.url == url
        connection = await asyncpg.connect(url)
        assert await connection.fetchval("SELECT count(*) FROM kept") == 0
        await connection.close()


def test_a_killed_server_is_spawned_again_on_its_address(tmp_path: Path) -> None:
    with Redis(tmp_path) as server:
        server.process.kill()
        server.process.wait()
        server.spawn()
        wait_until(server.is_ready)
        assert server.process.poll() is None


@pytest.mark.parametrize("kind", [Postgres, Redis])
def test_a_folder_has_one_server(tmp_path: Path, kind: type[Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.dev.embedded.LOCK_SECONDS", 0.2)
    with kind(tmp_path), pytest.raises(ServerFailed, match="in use"):
        kind(tmp_path).start()


def test_killing_the_owner_leaves_no_server_and_the_folder_carries_on(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    with Postgres(tmp_path) as postgres, Redis(tmp_path) as redis:
        assert postgres.is_ready()
        assert redis.is_ready()
    wait_until(lambda: not any(is_running(pid) for pid in pids), what="the end of the old servers")


def test_data_of_another_major_version_is_refused(tmp_path: Path) -> None:
    with Postgres(tmp_path) as server:
        version = server.data / "PG_VERSION"
    version.write_text("12\n")
    with pytest.raises(ServerFailed, match="was made by PostgreSQL 12"):
        Postgres(tmp_path).start()
