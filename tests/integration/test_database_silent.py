"""PostgreSQL that neither answers nor refuses: every caller is told so in time, and all goes on when it speaks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from httpx import AsyncClient, Response
from pydantic import SecretStr

from app.api import answer_limit
from app.settings import Settings
from app.store.database import Database
from tests.chaos.proxy import Proxy
from tests.chaos.taps import PostgresTap
from tests.integration.listening import listening

CALL_SECONDS_MAX = 10.0
BACK_SECONDS = 60.0
JOB = {"kind": "any", "input": 1}


@asynccontextmanager
async def road_to(settings: Settings) -> AsyncIterator[tuple[Proxy, Settings]]:
    """A road to the database that a test can close, and the settings that lead by it."""
    parts = urlsplit(settings.database_url.get_secret_value())
    road = Proxy(parts.port or 0, PostgresTap)
    host = parts.netloc.rpartition(":")[0]
    address = parts._replace(netloc=f"{host}:{await road.start()}").geturl()
    yield road, settings.model_copy(update={"database_url": SecretStr(address)})
    await road.close()


async def timed(client: AsyncClient, method: str, path: str, body: object, key: str) -> tuple[float, Response]:
    headers: Mapping[str, str] = {"Idempotency-Key": key} if key else {}
    began = time.monotonic()
    answer = await client.request(method, path, json=body, headers=headers, timeout=60)
    return time.monotonic() - began, answer


async def test_no_call_hangs_while_postgresql_is_silent_and_the_next_one_is_served(
    settings: Settings, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Far from the 10 s that one statement may take: a machine that is busy must not be what the times tell of.
    monkeypatch.setattr(answer_limit, "ANSWER_SECONDS", 2.0)
    async with road_to(settings) as (road, by_road), listening(by_road, db) as client:
        job = (await client.post("/v1/jobs", json=JOB)).json()["id"]
        calls: list[tuple[str, str, object, str]] = [
            *(("POST", "/v1/jobs", JOB, f"key-{number}") for number in range(30)),
            ("POST", "/v1/jobs/batch", {"jobs": [JOB, JOB]}, ""),
            ("POST", f"/v1/jobs/{job}/cancel", {}, ""),
            ("GET", f"/v1/jobs/{job}", None, ""),
            ("GET", "/v1/jobs", None, ""),
        ]
        road.hold()
        under_way = [asyncio.create_task(timed(client, *call)) for call in calls]
        await asyncio.sleep(1)
        under_way += [asyncio.create_task(timed(client, *call)) for call in calls]
        for took, answer in await asyncio.gather(*under_way):
            assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "1"), answer.text
            assert answer.json()["code"] == "database-away"
            assert took < settings.database_timeout_seconds
        road.heal()
        async with asyncio.timeout(BACK_SECONDS):
            while not (await timed(client, "POST", "/v1/jobs", JOB, "key-0"))[1].is_success:
                await asyncio.sleep(0.05)


def test_an_answer_comes_before_any_call_takes_ten_seconds() -> None:
    assert answer_limit.ANSWER_SECONDS < CALL_SECONDS_MAX
