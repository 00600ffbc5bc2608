"""A job, its result, its history and its effects, as callers read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import product
from uuid import uuid4

import pytest
from httpx import AsyncClient

from app.domain.outcomes import Done, Failure, Release, Retry
from app.domain.states import Policy, Reason
from app.settings import Settings
from app.store.effects import Effects
from app.store.leases import Ended
from app.usecases.cancel import cancel
from app.usecases.replay import replay
from tests.integration.reading import client_of, get
from tests.integration.world import DIGEST, World

FAILURE = Failure("ValueError", "no", "f" * 16)
SECONDS_TO_SPARE = 20


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with client_of(settings) as client:
        yield client


async def test_a_job_shows_the_state_of_the_row_it_owns(world: World, client: AsyncClient) -> None:
    queued, scheduled, retrying, running, released, dead, done, cancelled = await world.submit(8)
    await world.execute("UPDATE outbox SET deferred = true, due_at = now() + '1 h' WHERE job_id = $1", scheduled)
    jobs = {job.id: job for job in await world.claim([retrying, running, released, dead, done])}
    await world.leases.retry_if_leased([Ended(retrying, 1, Retry(FAILURE, 3_600))])
    await world.leases.release_if_leased([Ended(released, 1, Release("shutdown"))])
    await world.bury([jobs[dead]])
    await world.finish([jobs[done]])
    await cancel(world.db, cancelled, reason="not needed", actor="ann")
    states = {
        i: (await get(client, f"/v1/jobs/{i}"))["state"] for i in (queued, scheduled, retrying, running, released)
    }
    states |= {i: (await get(client, f"/v1/jobs/{i}"))["state"] for i in (dead, done, cancelled)}
    assert states == {
        queued: "queued",
        scheduled: "scheduled",
        retrying: "retrying",
        running: "running",
        released: "queued",
        dead: "dead",
        done: "done",
        cancelled: "cancelled",
    }


async def test_a_job_has_every_member_of_the_contract(world: World, client: AsyncClient) -> None:
    [job_id] = await world.submit()
    job = await get(client, f"/v1/jobs/{job_id}")
    assert {
        "id", "kind", "queue", "state", "reason", "attempt", "retries", "crashes", "input", "result", "error",
        "progress", "metadata", "created_at", "due_at", "started_at", "finished_at", "links",
    } <= job.keys()  # fmt: skip
    assert (job["retries"], job["attempt"], job["crashes"]) == ({"used": 0, "max": 2}, 0, 0)
    assert job["created_at"].endswith("Z")
    assert job["links"]["self"] == f"/v1/jobs/{job_id}"


async def test_input_and_result_come_back_digit_for_digit_and_in_order(world: World, client: AsyncClient) -> None:
    text = '{"z":1000000000000000000000000000001,"a":9007199254740993,"t":"\\u00e9 \u00e9","f":1.50}'
    [job] = await world.run()
    await world.execute("UPDATE jobs SET input = $2::text::json WHERE id = $1", job.id, text)
    await world.leases.finish_if_leased([Ended(job.id, 1, Done(text))])
    answer = await client.get(f"/v1/jobs/{job.id}")
    assert f'"input":{text},"result":{text}' in answer.text
    assert (await client.get(f"/v1/jobs/{job.id}/result")).text == text


async def test_a_retrying_job_shows_what_its_last_attempt_failed_of(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    await world.leases.retry_if_leased([Ended(job.id, 1, Retry(FAILURE, 3_600))])
    shown = await get(client, f"/v1/jobs/{job.id}")
    assert (shown["state"], shown["error"], shown["retries"]["used"]) == ("retrying", FAILURE.document(), 1)
    assert shown["due_at"] > shown["created_at"]


async def test_a_deferred_job_whose_time_has_come_is_queued_before_anybody_promotes_it(
    world: World, client: AsyncClient
) -> None:
    [job_id] = await world.submit()
    await world.execute("UPDATE outbox SET deferred = true, due_at = now() - interval '1 s' WHERE job_id = $1", job_id)
    assert (await get(client, f"/v1/jobs/{job_id}"))["state"] == "queued"
    assert [job["id"] for job in (await get(client, "/v1/jobs", state="queued"))["data"]] == [str(job_id)]
    assert (await get(client, "/v1/jobs", state="scheduled"))["data"] == []


async def test_a_job_nobody_submitted_is_404_on_every_path(client: AsyncClient) -> None:
    names = (str(uuid4()), "nonsense", "1", "%00", "9" * 400)
    for name, path in product(names, ("", "/result", "/timeline", "/effects", "/explanation")):
        assert (await get(client, f"/v1/jobs/{name}{path}", 404))["code"] == "job-not-found"


async def test_a_result_is_409_before_the_end_and_after_another_end(world: World, client: AsyncClient) -> None:
    [queued] = await world.submit()
    [dead] = await world.die()
    assert (await get(client, f"/v1/jobs/{queued}/result", 409))["code"] == "result-not-ready"
    problem = await get(client, f"/v1/jobs/{dead}/result", 409)
    assert (problem["code"], problem["state"], problem["reason"]) == ("job-did-not-succeed", "dead", "permanent_error")


async def test_an_unchanged_job_is_304_and_a_changed_one_is_sent_again(world: World, client: AsyncClient) -> None:
    [job_id] = await world.submit()
    path = f"/v1/jobs/{job_id}"
    known = {"If-None-Match": (await client.get(path)).headers["etag"]}
    again = await client.get(path, headers=known)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", known["If-None-Match"])
    await world.claim([job_id])
    changed = await client.get(path, headers=known)
    assert (changed.status_code, changed.json()["state"]) == (200, "running")
    assert changed.headers["etag"] != known["If-None-Match"]


async def test_a_waiting_caller_is_answered_when_the_job_ends(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    wait = {"Prefer": f"respond-async, wait={SECONDS_TO_SPARE}"}
    asked = asyncio.create_task(client.get(f"/v1/jobs/{job.id}", headers=wait))
    also = asyncio.create_task(client.get(f"/v1/jobs/{job.id}", headers=wait))
    done, _ = await asyncio.wait({asked, also}, timeout=0.3)
    assert not done
    await world.finish([job])
    async with asyncio.timeout(SECONDS_TO_SPARE / 2):
        for answer in (await asked, await also):
            assert answer.json()["state"] == "done"
            assert answer.headers["preference-applied"] == f"wait={SECONDS_TO_SPARE}"


async def test_a_waiting_caller_is_answered_when_the_time_is_up(world: World, client: AsyncClient) -> None:
    [job_id] = await world.submit()
    answer = await client.get(f"/v1/jobs/{job_id}", headers={"Prefer": "wait=1"})
    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    assert answer.headers["preference-applied"] == "wait=1"


async def test_the_timeline_tells_every_attempt_with_its_worker_and_end(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    await Effects(world.db, world.settings).intent(job.id, 1, "classify", Policy.REPEATABLE, DIGEST)
    await Effects(world.db, world.settings).record(job.id, 1, "classify", '"billing"')
    await world.leases.release_if_leased([Ended(job.id, 1, Release("shutdown"))])
    [again] = await world.claim([job.id])
    running = (await get(client, f"/v1/jobs/{job.id}/timeline"))["attempts"]
    assert [(a["attempt"], a["end"], a["cause"]) for a in running] == [(1, "released", "shutdown"), (2, None, None)]
    assert running[1]["worker"]["id"] == str(world.worker_id)
    assert running[1]["worker"]["pid"] > 0
    assert running[1]["ended_at"] is None

    await world.finish([again])
    story = await get(client, f"/v1/jobs/{job.id}/timeline")
    assert [(a["attempt"], a["end"]) for a in story["attempts"]] == [(1, "released"), (2, "done")]
    assert [event["event"] for event in story["events"]] == [
        "submitted",
        "attempt_started",
        "effect_begun",
        "effect_recorded",
        "attempt_ended",
        "attempt_started",
        "attempt_ended",
        "done",
    ]
    assert story["events"] == sorted(story["events"], key=lambda event: event["at"])


async def test_the_timeline_names_the_operator_who_replayed(world: World, client: AsyncClient) -> None:
    [job_id] = await world.die()
    await replay(world.db, [job_id], replay_id="once", reason="fixed", actor="ann")
    events = (await get(client, f"/v1/jobs/{job_id}/timeline"))["events"]
    [replayed] = [event for event in events if event["event"] == "operator"]
    assert (replayed["action"], replayed["actor"], replayed["reason"]) == ("replay", "ann", "fixed")


async def test_effects_show_policy_calls_and_the_recorded_result(world: World, client: AsyncClient) -> None:
    [job] = await world.run()
    effects = Effects(world.db, world.settings)
    await effects.intent(job.id, 1, "classify", Policy.REPEATABLE, DIGEST)
    await effects.record(job.id, 1, "classify", json.dumps({"category": "billing"}))
    await effects.intent(job.id, 1, "pay", Policy.AT_MOST_ONCE, DIGEST)
    shown = (await get(client, f"/v1/jobs/{job.id}/effects"))["data"]
    assert [(e["key"], e["state"], e["policy"], e["calls"], e["attempt"], e["result"]) for e in shown] == [
        ("classify", "recorded", "repeatable", 1, 1, {"category": "billing"}),
        ("pay", "intent", "at_most_once", 1, 1, None),
    ]
    assert shown[1]["recorded_at"] is None


async def test_a_dead_letter_shows_reason_error_and_fingerprint(world: World, client: AsyncClient) -> None:
    [job_id] = await world.die(reason=Reason.INVALID_INPUT)
    shown = await get(client, f"/v1/dead-letters/{job_id}")
    assert (shown["reason"], shown["error"]["type"], shown["fingerprint"]) == ("invalid_input", "ValueError", "f" * 16)
    assert shown["died_at"] == shown["finished_at"]
    await replay(world.db, [job_id], replay_id="once", reason="fixed", actor="ann")
    assert (await get(client, f"/v1/dead-letters/{job_id}", 404))["code"] == "dead-letter-not-found"
