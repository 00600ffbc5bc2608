"""A time says which instant it means, and every process and server reads the same one out of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app.domain.instants import rfc3339
from app.settings import Settings
from app.store import kinds
from app.store.audit import conservation
from app.store.database import Database
from tests.client import Client
from tests.integration.listening import ANY, counts, listening
from tests.processes import Stack, wait_until

HANDLERS = ["tests.handlers.values"]
CHICAGO = {"TZ": "America/Chicago"}
ZONES = ({"TZ": "Asia/Kolkata"}, {"TZ": "Pacific/Auckland"})
LONG = {"OUTLAST_MAX_HORIZON_DAYS": "36600"}

SAME_INSTANT = (
    "2027-03-14T08:30:00Z",
    "2027-03-14t08:30:00.000000z",
    "2027-03-14T14:00:00+05:30",
    "2027-03-14T02:30:00-06:00",
    "2027-03-13T20:30:00.0-12:00",
    "2027-03-14T08:30:00-00:00",
)

UNREADABLE: tuple[object, ...] = (
    "2027-01-01T12:00:00",
    "2027-01-01",
    "2027-02-30T12:00:00Z",
    "2027-13-01T12:00:00Z",
    "2027-01-01T24:00:01Z",
    "2027-06-30T23:59:60Z",
    "2027-01-01 12:00:00Z",
    "2027-01-01T12:00:00+99:00",
    "2027-01-01T12:00:00 America/Chicago",
    "0000-01-01T12:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "10000-01-01T12:00:00Z",
    "-2027-01-01T12:00:00Z",
    "+2027-01-01T12:00:00Z",
    "tomorrow",
    "",
    "1",
    "-1",
    1_800_000_000,
    -1,
    True,
    [],
)

BEYOND: list[dict[str, Any]] = [
    {"run_at": "9999-12-31T23:59:59Z"},
    {"deadline": "9999-12-31T23:59:59Z"},
    {"run_at": "2031-01-01T12:00:00Z"},
    {"delay_seconds": 2**31},
    {"delay_seconds": 1e12},
    {"delay_seconds": 2**63},
    {"delay_seconds": -1},
    {"delay_seconds": -0.001},
]


def submit(client: Client, **times: Any) -> dict[str, Any]:
    answer = client.http.post("/v1/jobs", json={"kind": "value.echo", "input": 1, **times})
    assert answer.status_code == 202, answer.text
    return answer.json()


async def test_processes_in_four_time_zones_start_a_job_at_its_instant_and_none_before(
    stack: Stack, db: Database
) -> None:
    """Jobs start hours early or late, depending on where a process runs; a far day breaks what waits for it."""
    async with db.session() as connection:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET timezone TO 'America/St_Johns'")
        await connection.execute(f"ALTER DATABASE {name} SET datestyle TO 'SQL, DMY'")
    fronts: list[Client] = []
    for zone in (CHICAGO, ZONES[0]):
        await asyncio.to_thread(stack.api, env=zone | LONG)
        fronts.append(Client(stack.api_url))
    stack.relay(env=ZONES[1])
    stack.worker(HANDLERS, env=CHICAGO)
    chicago, kolkata = fronts
    await asyncio.to_thread(wait_until, lambda: chicago.http.get("/v1/kinds").json()["data"], 60, what="the kinds")

    waiting = [submit(front, run_at=text) for front in fronts for text in SAME_INSTANT]
    assert {job["due_at"] for job in waiting} == {"2027-03-14T08:30:00.000000Z"}
    assert {kolkata.job(job["id"])["due_at"] for job in waiting} == {"2027-03-14T08:30:00.000000Z"}
    far = [submit(chicago, run_at="2100-01-01T00:00:00+14:00"), submit(kolkata, delay_seconds=2**31 + 1)]

    moment = datetime.now(UTC) + timedelta(seconds=2)
    soon = [
        submit(chicago, run_at=rfc3339(moment)),
        submit(kolkata, run_at=moment.isoformat().replace("+00:00", "-00:00")),
        submit(chicago, delay_seconds=2),
    ]
    at_once = [submit(kolkata, delay_seconds=0), submit(chicago, run_at="0001-01-01T00:00:00Z")]
    for job in [*at_once, *soon]:
        ended = await asyncio.to_thread(chicago.wait_for, job["id"], "done", seconds=60)
        late = datetime.fromisoformat(ended["started_at"]) - datetime.fromisoformat(job["due_at"])
        assert timedelta(0) <= late < timedelta(seconds=30)
    for job in [*waiting, *far]:
        found = chicago.job(job["id"])
        assert (found["state"], found["attempt"], found["due_at"]) == ("scheduled", 0, job["due_at"])
    listed = stack.run("job", "list", "--state", "scheduled", "--since", "1h", "-o", "ids", env=ZONES[1])
    assert len(listed.stdout.split()) == len(waiting) + len(far)
    assert await conservation(db) == []


@pytest.fixture
async def client(settings: Settings, db: Database) -> AsyncIterator[httpx.AsyncClient]:
    await kinds.publish(db, [ANY])
    async with listening(settings, db) as client:
        yield client


async def test_a_time_that_could_mean_two_instants_or_none_is_refused(client: httpx.AsyncClient, db: Database) -> None:
    """A time without a zone is guessed; the thirtieth of February is an error of the server."""
    for member in ("run_at", "deadline"):
        for text in UNREADABLE:
            refused = await client.post("/v1/jobs", json={"kind": "any", "input": 1, member: text})
            assert (text, refused.status_code) == (text, 422), refused.text
            assert refused.json()["errors"][0]["pointer"] == f"/{member}"
    for path in ("/v1/jobs", "/v1/dead-letters"):
        for text in ("2027-01-01T12:00:00", "2027-02-30T12:00:00Z", "-1", "1e20"):
            assert (await client.get(path, params={"since": text})).status_code == 422
    assert await counts(db) == (0, 0, 0)


async def test_a_time_beyond_the_horizon_is_refused_and_not_shortened(client: httpx.AsyncClient, db: Database) -> None:
    """A delay over the limit of some layer becomes a short one, or none."""
    for times in BEYOND:
        refused = await client.post("/v1/jobs", json={"kind": "any", "input": 1, **times})
        assert (times, refused.status_code) == (times, 422), refused.text
        assert refused.json()["errors"][0]["pointer"] == f"/{next(iter(times))}"
    assert await counts(db) == (0, 0, 0)
    within = await client.post("/v1/jobs", json={"kind": "any", "input": 1, "delay_seconds": 365 * 86_400})
    job = within.json()
    waits = datetime.fromisoformat(job["due_at"]) - datetime.fromisoformat(job["created_at"])
    assert (job["state"], waits) == ("scheduled", timedelta(days=365))
