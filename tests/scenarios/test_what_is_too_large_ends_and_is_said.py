"""Every size has a limit that somebody states, and what is over it still comes to an end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from app.domain.outcomes import MESSAGE_CHARS_MAX
from app.domain.request import METADATA_BYTES_MAX
from app.settings import Settings
from app.store.database import Database
from tests.fundamentals.scale import scaled
from tests.integration.listening import counts, listening, send_raw
from tests.integration.shell import Shell
from tests.scenarios.premises import Premises

HANDLERS = ["tests.handlers.values", "tests.handlers.steps"]
ENDED = ("done", "dead", "cancelled")
RESULT_MAX = Settings.model_fields["max_result_bytes"].default
EFFECT_MAX = Settings.model_fields["max_effect_bytes"].default
BODY_MAX = Settings.model_fields["max_body_bytes"].default
VAST = scaled(20_000_000, 200_000_000)
LISTED = 100
ITEM_BYTES_MAX = 2_000


def ended(premises: Premises, kind: str, size: int) -> dict[str, Any]:
    return premises.client.wait_for(premises.client.submit(kind, {"how": "", "size": size}), *ENDED, seconds=90)


def test_a_result_an_effect_and_an_error_over_their_limits_end_the_job_at_its_first_attempt(premises: Premises) -> None:
    """A result over the limit is replaced in silence, or its job runs for ever."""
    premises.worker(HANDLERS)
    # Others are at work all the while and keep their leases.
    beside = premises.submit(20, hold=True)
    premises.until_held(len(beside))

    for size in (1_000, RESULT_MAX - 1, RESULT_MAX):
        job = ended(premises, "value.long", size)
        assert (size, job["state"], len(json.dumps(job["result"]))) == (size, "done", size)
    for size in (RESULT_MAX + 1, VAST):
        job = ended(premises, "value.long", size)
        assert (job["reason"], job["attempt"], job["result"]) == ("result_too_large", 1, None)
        assert str(RESULT_MAX) in job["error"]["message"]

    assert ended(premises, "value.long-effect", EFFECT_MAX)["result"] == "recorded"
    for size in (EFFECT_MAX + 1, VAST):
        job = ended(premises, "value.long-effect", size)
        assert (job["reason"], job["attempt"]) == ("permanent_error", 1)
        assert "effect make" in job["error"]["message"]

    job = ended(premises, "value.long-error", VAST)
    assert (job["reason"], job["attempt"]) == ("permanent_error", 1)
    assert job["error"]["message"].endswith("(cut)")
    assert len(job["error"]["message"]) <= MESSAGE_CHARS_MAX
    [attempt] = premises.client.timeline(job["id"])["attempts"]
    assert len(json.dumps(attempt)) < 2 * MESSAGE_CHARS_MAX

    premises.go_on()
    premises.until_done(beside)
    assert premises.charged(beside) == {"attempts": len(beside), "retries": 0, "crashes": 0}


def test_a_list_of_large_jobs_is_small(premises: Premises) -> None:
    """A list carries every payload, and is as slow as they are long."""
    premises.worker(HANDLERS)
    value = "x" * (BODY_MAX // 20)
    ids = [premises.client.submit("value.echo", value) for _ in range(LISTED)]
    premises.until_done(ids)
    for query in (f"limit={LISTED}", f"limit={LISTED}&state=done&kind=value.echo"):
        listed = premises.client.http.get(f"/v1/jobs?{query}")
        assert len(listed.json()["data"]) == LISTED
        assert len(listed.content) < LISTED * ITEM_BYTES_MAX
        assert not {"input", "result"} & {*listed.json()["data"][0]}
    listed = asyncio.run(Shell(premises.settings)("job", "list", "--limit", LISTED, "-o", "json"))
    assert len(listed.out) < LISTED * ITEM_BYTES_MAX


async def test_a_request_over_its_limit_is_refused_before_anything_is_stored(settings: Settings, db: Database) -> None:
    """A body over the limit fails in a layer that cannot say so."""

    def body(size: int) -> bytes:
        frame = '{"kind":"any","input":""}'
        return frame.replace('""', f'"{"x" * (size - len(frame))}"').encode()

    def metadata(size: int) -> dict[str, Any]:
        return {"kind": "any", "input": 1, "metadata": {"m": "x" * (size - len('{"m":""}'))}}

    async with listening(settings, db) as client:
        for size in (BODY_MAX - 1, BODY_MAX):
            assert (await client.post("/v1/jobs", content=body(size))).status_code == 202
        for path, sent in (("/v1/jobs", body(BODY_MAX + 1)), ("/v1/jobs/batch", b'{"jobs":[' + body(BODY_MAX) + b"]}")):
            refused = await client.post(path, content=sent)
            assert (refused.status_code, refused.json()["code"]) == (413, "body-too-large")
        for size in (20_000_000, 200_000_000, 2**63 - 1):
            raw = await send_raw(client, f"POST /v1/jobs HTTP/1.1\nHost: x\nContent-Length: {size}")
            assert raw.status == 413
        assert (await client.post("/v1/jobs", json=metadata(METADATA_BYTES_MAX))).status_code == 202
        refused = await client.post("/v1/jobs", json=metadata(METADATA_BYTES_MAX + 1))
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/metadata")
        assert (await client.get("/v1/jobs")).status_code == 200
    assert await counts(db) == (3, 3, 0)
