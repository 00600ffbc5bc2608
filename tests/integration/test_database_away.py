"""The API starts without PostgreSQL, says 503 while it is away, and goes on by itself when it is back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from httpx import Response
from pydantic import SecretStr

from app.settings import Settings
from app.store.database import Database
from app.store.migrate import migrate
from tests.integration.listening import counts, listening, serving
from workers.dev.embedded import free_port
from workers.dev.postgres import Postgres

JOB = {"kind": "any", "input": 1}


def assert_away(answer: Response) -> None:
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1"), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "database-away"
    assert "127.0.0.1" not in answer.text


async def test_a_submit_while_postgresql_is_away_is_503_and_works_once_it_is_back(tmp_path: Path) -> None:
    with Postgres(tmp_path, durable=False) as postgres:
        settings = Settings(database_url=SecretStr(postgres.url))
        await asyncio.to_thread(migrate, settings)
        db = await Database.open(settings, "test")
        async with listening(settings, db) as client:
            assert (await client.post("/v1/jobs", json=JOB)).status_code == 202
            await asyncio.to_thread(postgres.stop)
            assert_away(await client.post("/v1/jobs", json=JOB))
            assert_away(await client.get("/v1/jobs"))
            assert_away(await client.post("/v1/jobs/batch", json={"jobs": [JOB, JOB]}))
            assert (await client.get("/healthz")).status_code == 200
            await asyncio.to_thread(postgres.start)
            assert (await client.post("/v1/jobs", json=JOB)).status_code == 202
            assert await counts(db) == (2, 2, 0)
        await db.close()


async def test_the_api_starts_without_postgresql_and_says_so() -> None:
    async with serving(Settings(database_url=SecretStr(f"postgresql://127.0.0.1:{free_port()}/none"))) as client:
        assert_away(await client.post("/v1/jobs", json=JOB))
        assert_away(await client.get("/v1/kinds"))
