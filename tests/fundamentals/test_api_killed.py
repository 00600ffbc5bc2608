"""A caller whose API dies in mid-answer sends its key again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from app.store.audit import run_checks
from app.store.database import Database
from tests.client import Client, journal_of
from tests.fundamentals.conftest import HANDLERS
from tests.processes import Stack, wait_until

CALLERS = 16


async def test_callers_whose_api_is_killed_send_their_keys_again_and_get_one_job_each(
    stack: Stack, db: Database, tmp_path: Path
) -> None:
    api = stack.api()
    stack.worker(HANDLERS, env={"OUTLAST_TRANSPORT": "pg"})
    client = Client(stack.api_url)
    wait_until(lambda: client.http.get("/v1/kinds").json()["data"], 40, what="the kinds to be published")
    plan = {"journal": str(tmp_path / "journal"), "steps": ["one"]}
    keys = [f"key-{number}" for number in range(200)]
    answered: dict[str, str] = {}

    def submit(key: str) -> None:
        try:
            job_id = client.submit("test.steps", plan, key=key)
        except httpx.TransportError:
            return
        assert answered.setdefault(key, job_id) == job_id, "a key is one job for ever"

    with ThreadPoolExecutor(CALLERS) as callers:
        calls = [callers.submit(submit, key) for key in keys]
        wait_until(lambda: len(answered) > 20, what="some answers")
        api.kill()
    assert [call.exception() for call in calls] == [None] * len(keys)
    assert len(answered) < len(keys), "the kill came in time"
    stack.api()
    client = Client(stack.api_url)
    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(submit, keys))

    assert len(set(answered.values())) == len(keys)
    for job_id in answered.values():
        client.wait_for(job_id, "done", seconds=60)
    assert journal_of(tmp_path / "journal").count("start") == len(keys)
    assert await run_checks(db) == []
