"""What callers and the settings entrust to us is in no log and no metric, at any level, whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pydantic import SecretStr

from app.settings import Settings
from tests.client import Client
from tests.handlers.secretive import WAYS
from tests.integration.shell import Shell
from tests.processes import Stack, wait_until

HANDLERS = ["tests.handlers.secretive"]
ENDED = ("done", "dead", "cancelled")
LOUD = {"OUTLAST_LOG_LEVEL": "DEBUG"}
TALKERS = 20
# Of these the text is their author's, and is stored; of all others not even that has a marker in it.
AUTHORS_TEXT = ("raise text", "raise from", "fail in an effect")


def marker(what: str) -> str:
    """A word that is nowhere else."""
    return f"{what}-{uuid4().hex}"


PASSWORD, NOTE, NESTED, NAME, METADATA, KEY, TOKEN, REASON = (
    marker(what) for what in ("password", "note", "nested", "name", "metadata", "key", "token", "reason")
)
ENTRUSTED = (PASSWORD, NOTE, NESTED, NAME, METADATA, KEY)


def logs(stack: Stack) -> str:
    return "".join(process.stdout + process.stderr for process in stack.processes)


def hits(text: str, words: tuple[str, ...]) -> list[str]:
    return [word.partition("-")[0] for word in words if word in text]


def passwords(settings: Settings) -> tuple[str, ...]:
    urls = (settings.database_url, settings.redis_url)
    return tuple(url.get_secret_value().partition("@")[0].rpartition(":")[2] for url in urls)


@pytest.fixture
def client(stack: Stack) -> Client:
    """A caller with the token of an API that says all it has to say, as do the relay and a worker beside it."""
    stack.settings = stack.settings.model_copy(update={"api_token": SecretStr(TOKEN), "lease_seconds": 10})
    stack.api(env=LOUD)
    stack.relay(env=LOUD)
    stack.worker(HANDLERS, env=LOUD)
    client = Client(stack.api_url)
    client.http.headers["Authorization"] = f"Bearer {TOKEN}"
    wait_until(lambda: client.http.get("/v1/kinds").json()["data"], 60, what="the kinds")
    return client


def entrusted(stack: Stack, how: str) -> dict[str, Any]:
    return {"how": how, "password": PASSWORD, "note": NOTE, "url": stack.api_url, "nested": {NAME: [NESTED]}}


def refusals(client: Client) -> list[int]:
    """What requests that cannot be carried out, full of what was entrusted to them, are answered with."""
    refused = [
        client.http.post("/v1/jobs", json={"kind": "trust.tell", "input": [PASSWORD]}),
        client.http.post("/v1/jobs", json={"kind": "trust.tell", "input": {"how": 1}, NAME: NOTE}),
        client.http.post("/v1/jobs", content=f'{{"kind":"trust.tell","input":"{PASSWORD}'),
        client.http.post("/v1/jobs", json={"kind": "trust.tell", "input": 1}, headers={"Idempotency-Key": KEY * 9}),
        client.http.get("/v1/jobs", params={"cursor": NOTE, "kind": NAME}),
        client.http.get(f"/v1/jobs/{PASSWORD}"),
        client.http.get("/v1/jobs", headers={"Authorization": f"Bearer {PASSWORD}"}),
    ]
    return [answer.status_code for answer in refused]


def test_no_failure_of_a_handler_or_a_request_brings_an_input_into_a_log_or_a_metric(
    client: Client, stack: Stack
) -> None:
    """Tokens from a job's arguments stand in the log at enqueue, at start and at failure."""
    ids = {
        how: client.submit("trust.tell", entrusted(stack, how), key=f"{KEY}-{n}", metadata={"m": METADATA})
        for n, how in enumerate(WAYS)
    }
    for kind in ("trust.tell-in-a-thread", "trust.return"):
        ids[kind] = client.submit(kind, entrusted(stack, "raise text"))
    ended = {how: client.wait_for(job_id, *ENDED, seconds=60) for how, job_id in ids.items()}

    assert refusals(client) == [422, 422, 422, 422, 422, 404, 401]
    client.http.post(f"/v1/jobs/{ids['raise text']}/cancel", json={"reason": REASON})
    client.http.post(f"/v1/dead-letters/{ids['raise text']}/replay", json={"reason": REASON})

    for how, job in ended.items():
        if how not in (*AUTHORS_TEXT, "trust.tell-in-a-thread"):
            assert (how, hits(json.dumps(job["error"]), ENTRUSTED)) == (how, [])
            assert (how, hits(client.http.get(f"/v1/jobs/{job['id']}/timeline").text, (PASSWORD,))) == (how, [])
    assert "https://example.com/" in ended["raise url"]["error"]["message"]
    listed = client.http.get("/v1/jobs?limit=200").text + client.http.get("/v1/dead-letters?limit=200").text
    assert hits(listed, (PASSWORD, NESTED, NAME, KEY)) == ["password"], "an author's text, and no input"
    assert PASSWORD not in client.http.get("/v1/jobs?limit=200&state=done").text
    assert hits(client.http.get("/metrics").text, (*ENTRUSTED, REASON)) == []

    said = [client.submit("trust.log", {"how": "log"}) for _ in range(TALKERS)]
    for job_id in said:
        client.wait_for(job_id, "done", seconds=60)
    for process in stack.processes:
        assert process.stop() == 0
    assert hits(logs(stack), (*ENTRUSTED, REASON, TOKEN, *passwords(stack.settings))) == []

    # It was all there to be said: each way left its trace, and each line has the job of whoever wrote it.
    lines = [json.loads(line) for line in logs(stack).splitlines() if line.startswith("{")]
    events = {line["event"] for line in lines}
    assert {"handler_raised", "task_failed", "thread_failed", "unraisable", "loop_blocked"} <= events
    spoken = [line for line in lines if line["event"] == "said"]
    assert len(spoken) == 10 * TALKERS
    assert [line["job"] for line in spoken] == [line["said_by"] for line in spoken]


async def test_passwords_and_tokens_of_the_settings_are_said_nowhere(
    settings: Settings, stack: Stack, tmp_path: Path
) -> None:
    """The address of a server is logged whole when it cannot be reached or its password is wrong."""
    wrong, token = marker("wrong"), marker("token")
    url = settings.database_url.get_secret_value()
    broker = settings.redis_url.get_secret_value()
    before = passwords(settings)
    env = {
        **LOUD,
        "OUTLAST_DATABASE_URL": url.replace(before[0], wrong),
        "OUTLAST_REDIS_URL": broker.replace(before[1], wrong) if before[1] else f"redis://:{wrong}@127.0.0.1:1",
        "OUTLAST_API_TOKEN": token,
    }
    await asyncio.to_thread(stack.api, env=env)
    for process in (stack.relay(env=env), stack.worker(HANDLERS, env=env)):
        await asyncio.to_thread(process.wait_for_output, "InvalidPasswordError", 60)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=stack.api_url, headers=headers, timeout=30) as client:
        answers = [await client.get(path) for path in ("/v1/jobs", "/readyz", "/metrics")]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    outlast = Shell(settings)
    commands = [
        await outlast(*words.split(), env=env)
        for words in ("doctor", "doctor -o json", "job list", "audit", f"dead replay {uuid4()} --reason r --yes")
    ]
    assert {ran.code for ran in commands} == {9}
    for name, bad in (("DATABASE", f"mysql://u:{wrong}@h/d"), ("REDIS", f"redis://u:{wrong}@h:port/")):
        commands.append(await outlast("doctor", env={f"OUTLAST_{name}_URL": bad}))
        assert commands[-1].code == 2
    told = [ran.out + ran.err for ran in commands] + [answer.text for answer in answers] + [logs(stack)]
    assert hits("".join(told), (wrong, token, *before)) == []
    assert "password" in logs(stack), "that it is wrong is said all the same"
