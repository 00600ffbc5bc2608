"""A caller may be gone at any moment of its submit: there is a whole job or none, and nothing is held for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from app.store import kinds
from app.store.audit import conservation
from app.store.database import Database
from tests.integration.listening import ANY, counts
from tests.processes import Stack, wait_until

CALLERS = 200
TOKEN = "t" * 20
LONGEST_SECONDS = 0.02
AT_ONCE = 20


async def hang_up(url: str, key: str, random: Random) -> None:
    """A submit that is cut after some of its bytes, or after all of them and a moment."""
    body = json.dumps({"kind": "any", "input": {"key": key}})
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nIdempotency-Key: {key}\r\n"
    whole = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    cut = random.choice([random.randrange(len(whole)), len(whole), len(whole), len(whole)])
    address = urlsplit(url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    with suppress(ConnectionError):
        writer.write(whole[:cut])
        await asyncio.sleep(random.random() * LONGEST_SECONDS)
    writer.transport.abort()


@asynccontextmanager
async def whole_at_every_moment(db: Database) -> AsyncIterator[None]:
    """Looks at the record all the while."""

    async def look() -> None:
        while True:
            made, waiting, keyed = await counts(db)
            assert made == waiting == keyed
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    yield
    assert not looking.done(), looking.exception()
    looking.cancel()


async def test_two_hundred_callers_cut_at_random_moments_send_again_and_have_a_job_each(
    stack: Stack, db: Database
) -> None:
    """A caller that leaves in mid-request leaves half a job, a transaction open, or a connection that never returns."""
    await kinds.publish(db, [ANY])
    stack.settings = stack.settings.model_copy(update={"api_token": SecretStr(TOKEN), "database_pool_max": 3})
    await asyncio.to_thread(stack.api)
    random, keys = Random(1), [f"cut-{number}" for number in range(CALLERS)]
    async with whole_at_every_moment(db):
        for start in range(0, CALLERS, AT_ONCE):
            await asyncio.gather(*(hang_up(stack.api_url, key, random) for key in keys[start : start + AT_ONCE]))
    await asyncio.to_thread(wait_until, lambda: metrics_answer(stack.api_url), 20, what="an API that is free again")
    made, _, _ = await counts(db)
    assert 0 < made < CALLERS, "some were cut before and some after they were stored"

    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=stack.api_url, headers=headers, timeout=30) as client:
        again = [
            await client.post("/v1/jobs", json={"kind": "any", "input": {"key": key}}, headers={"Idempotency-Key": key})
            for key in keys
        ]
    assert [answer.status_code for answer in again].count(202) == CALLERS - made
    assert [answer.status_code for answer in again].count(200) == made
    assert await counts(db) == (CALLERS, CALLERS, CALLERS)
    assert await conservation(db) == []
    async with db.session() as connection:
        open_transactions = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outlast api' AND state LIKE 'idle in%'"
        )
    assert open_transactions == 0


def metrics_answer(url: str) -> bool:
    return httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10).is_success
