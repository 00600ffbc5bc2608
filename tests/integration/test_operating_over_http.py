"""Cancel, retry and replay over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from httpx import AsyncClient

from app.settings import Settings
from tests.integration.listening import serving
from tests.integration.world import World


@pytest.fixture
async def client(settings: Settings, world: World) -> AsyncIterator[AsyncClient]:
    async with serving(settings) as client:
        yield client


async def test_cancel_answers_with_the_job_and_is_idempotent(client: AsyncClient, world: World) -> None:
    [job_id] = await world.submit()
    first = await client.post(f"/v1/jobs/{job_id}/cancel", json={"reason": "not needed"})
    second = await client.post(f"/v1/jobs/{job_id}/cancel")
    assert (first.status_code, second.status_code) == (200, 200)
    assert (first.json()["state"], first.json()["reason"]) == ("cancelled", "not needed")
    assert second.json() == first.json()


async def test_a_job_that_ended_is_not_cancelled(client: AsyncClient, world: World) -> None:
    done = await world.run()
    await world.finish(done)
    answer = await client.post(f"/v1/jobs/{done[0].id}/cancel")
    assert answer.status_code == 409
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["job_id"]) == ("job-terminal", str(done[0].id))


async def test_retry_is_accepted_while_the_budget_lasts(client: AsyncClient, world: World) -> None:
    [job_id] = await world.die(max_retries=1)
    first = await client.post(f"/v1/jobs/{job_id}/retry")
    assert (first.status_code, first.json()["state"], first.json()["retries"]) == (202, "queued", {"used": 1, "max": 1})
    assert first.headers["Location"] == f"/v1/jobs/{job_id}"
    await world.bury(await world.claim([job_id]))
    second = await client.post(f"/v1/jobs/{job_id}/retry")
    assert (second.status_code, second.json()["code"]) == (409, "retry-budget-exhausted")


async def test_a_replay_needs_a_reason_and_happens_once(client: AsyncClient, world: World) -> None:
    [job_id] = await world.die()
    path = f"/v1/dead-letters/{job_id}/replay"
    assert [(await client.post(path, content=body)).status_code for body in (b"", b"{}", b'{"reason":""}')] == [422] * 3
    accepted, refused = [await client.post(path, json={"reason": "fixed"}) for _ in range(2)]
    assert (accepted.status_code, accepted.json()["state"], accepted.json()["attempt"]) == (202, "queued", 1)
    assert (refused.status_code, refused.json()["code"]) == (409, "job-not-dead")
    assert await world.actions(job_id) == [("api", "replay", "fixed")]


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"nonsense",
        b'{"reason": 1}',
        b'{"reason": "a\\u0000b"}',
        b'{"reason": "\\ud800"}',
        b'{"reason": "x", "more": 1}',
        b'{"\\u0000": 1}',
        b'{"reason": "' + b"x" * 2_001 + b'"}',
        b"\xff",
    ],
)
async def test_a_body_that_is_none_is_refused_and_nothing_moves(client: AsyncClient, world: World, body: bytes) -> None:
    [waiting] = await world.submit()
    [dead] = await world.die()
    for path in (f"/v1/jobs/{waiting}/cancel", f"/v1/jobs/{dead}/retry", f"/v1/dead-letters/{dead}/replay"):
        answer = await client.post(path, content=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] in {"", "/reason", "/more"}
    assert await world.row("outbox", waiting) is not None
    assert await world.row("dead_letters", dead) is not None


async def test_a_job_nobody_submitted_is_not_found(client: AsyncClient) -> None:
    for path in (f"/v1/jobs/{uuid4()}/cancel", "/v1/jobs/nonsense/retry"):
        answer = await client.post(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "job-not-found")
    answer = await client.post(f"/v1/dead-letters/{uuid4()}/replay", json={"reason": "fixed"})
    assert (answer.status_code, answer.json()["code"]) == (404, "job-not-found")
