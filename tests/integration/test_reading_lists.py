"""Lists: newest first, every match once, bound by their filters, and never more work than a page is worth."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import product
from uuid import UUID

import pytest
from httpx import AsyncClient

from app.domain.filters import DeadFilter, JobFilter
from app.domain.outcomes import Retry
from app.domain.states import Reason, State
from app.settings import Settings
from app.store import reading
from app.store.database import Database, sql
from app.store.leases import Ended
from app.usecases.cancel import cancel
from tests.integration.reading import all_ids, client_of, get
from tests.integration.test_reading_jobs import FAILURE
from tests.integration.world import World

BATCH = 7
FAR_OFF = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59-12:00")
WRONG: list[dict[str, str]] = [
    *({"limit": value} for value in ("0", "201", "-1", "1e20", "4294967296", "9223372036854775808", "x", "")),
    *({"kind": value} for value in ("A", "a\n", "a\0", "é", "a" * 101, "")),
    *({"queue": value} for value in ("A b", "\0")),
    *(
        {"since": value}
        for value in (
            "2031-01-01T12:00:00",
            "2031-02-30T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "2031-01-01",
            "1766000000",
            "0",
            "x",
        )
    ),
    *({"until": value} for value in ("0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00")),
    *({"cursor": value} for value in ("", "x", "=", "é", "A" * 32, "A" * 43, "\0", "A" * 300)),
    {"state": "sleeping", "reason": "sleeping"},
    {"stat": "dead"},
]
PAGES = ("page_jobs", "page_outbox", "page_leases", "page_dead", "page_done", "page_cancelled")


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[AsyncClient]:
    async with client_of(settings) as client:
        yield client


@pytest.fixture
async def states(world: World) -> dict[str, list[UUID]]:
    """Seven jobs in every state that can be listed, by state."""
    ids = await world.submit(7 * BATCH)
    names = ("queued", "scheduled", "retrying", "running", "dead", "done", "cancelled")
    by_state = {name: ids[at :: len(names)] for at, name in enumerate(names)}
    await world.execute(
        "UPDATE outbox SET deferred = true, due_at = now() + interval '1 h' WHERE job_id = ANY($1)",
        by_state["scheduled"],
    )
    held = {name: await world.claim(by_state[name]) for name in ("retrying", "running", "dead", "done")}
    await world.leases.retry_if_leased([Ended(job.id, 1, Retry(FAILURE, 3_600)) for job in held["retrying"]])
    await world.bury(held["dead"])
    await world.finish(held["done"])
    for job_id in by_state["cancelled"]:
        await cancel(world.db, job_id, reason=None, actor="ann")
    return by_state


async def test_each_state_lists_its_jobs_once_and_newest_first(
    states: dict[str, list[UUID]], client: AsyncClient
) -> None:
    for (state, ids), limit in product(states.items(), (1, 3, 7, 200)):
        assert await all_ids(client, "/v1/jobs", state=state, limit=limit) == [str(i) for i in sorted(ids)[::-1]]


async def test_without_a_state_every_job_is_listed(states: dict[str, list[UUID]], client: AsyncClient) -> None:
    ids = sorted((i for group in states.values() for i in group), reverse=True)
    assert await all_ids(client, "/v1/jobs", limit=5) == [str(i) for i in ids]


async def test_items_carry_neither_input_nor_result(states: dict[str, list[UUID]], client: AsyncClient) -> None:
    for item in (await get(client, "/v1/jobs", limit=200))["data"]:
        assert item.keys().isdisjoint({"input", "result"})


async def test_kind_queue_and_time_narrow_a_list(world: World, client: AsyncClient) -> None:
    [early] = await world.submit(kind="a.one")
    await world.execute("SELECT pg_sleep(0.01)")
    [late] = await world.submit(kind="b.two")
    between = (await get(client, f"/v1/jobs/{late}"))["created_at"]
    assert await all_ids(client, "/v1/jobs", kind="a.one") == [str(early)]
    assert await all_ids(client, "/v1/jobs", kind="a.one", state="queued") == [str(early)]
    assert await all_ids(client, "/v1/jobs", queue="other") == []
    assert await all_ids(client, "/v1/jobs", since=between) == [str(late)]
    assert await all_ids(client, "/v1/jobs", until=between, state="queued") == [str(early)]


async def test_a_sparse_filter_gives_short_pages_that_go_on(world: World) -> None:
    [first] = await world.submit(kind="rare.kind")
    await world.submit(25)
    [last] = await world.submit(kind="rare.kind")
    for state in (None, State.QUEUED):
        filters = JobFilter(state=state, kind="rare.kind")
        seen, pages, before = list[UUID](), 0, None
        while True:
            page = await reading.page(world.db, filters, 5, before, look_max=10)
            seen, pages, before = seen + page.ids, pages + 1, page.stopped
            if before is None:
                break
        assert (seen, pages) == ([last, first], 3)


async def test_a_page_that_ends_where_the_looking_stops_goes_on_behind_it(world: World) -> None:
    ids = (await world.submit(10))[::-1]
    page = await reading.page(world.db, JobFilter(), 20, None, look_max=10)
    assert (page.ids, page.stopped) == (ids, ids[-1])
    assert await reading.page(world.db, JobFilter(), 20, page.stopped, look_max=10) == reading.Ids([], None)


async def test_jobs_submitted_between_two_pages_shift_nothing(world: World, client: AsyncClient) -> None:
    old = await world.submit(6)
    first = await get(client, "/v1/jobs", limit=3)
    await world.submit(5)
    second = await get(client, "/v1/jobs", limit=3, cursor=first["next_cursor"])
    assert [j["id"] for j in first["data"] + second["data"]] == [str(i) for i in old[::-1]]
    assert second["next_cursor"] is None


async def test_a_cursor_with_other_filters_is_refused(world: World, client: AsyncClient) -> None:
    await world.die(3)
    jobs = (await get(client, "/v1/jobs", limit=1))["next_cursor"]
    dead = (await get(client, "/v1/dead-letters", limit=1))["next_cursor"]
    for path, params in (
        ("/v1/jobs", {"cursor": jobs, "state": "dead"}),
        ("/v1/jobs", {"cursor": jobs, "kind": "test.job"}),
        ("/v1/jobs", {"cursor": dead}),
        ("/v1/dead-letters", {"cursor": dead, "reason": "expired"}),
        ("/v1/dead-letters", {"cursor": jobs}),
    ):
        assert (await get(client, path, 422, **params))["code"] == "invalid-cursor"
    await get(client, "/v1/jobs", cursor=jobs, limit=2)


async def test_a_parameter_that_makes_no_sense_is_422(client: AsyncClient) -> None:
    for path, wrong in product(("/v1/jobs", "/v1/dead-letters"), WRONG):
        answer = await client.get(path, params=wrong)
        assert answer.status_code == 422, wrong
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_parameter_given_twice_is_422_and_named(client: AsyncClient) -> None:
    for path in ("/v1/jobs", "/v1/dead-letters"):
        answer = await client.get(path, params=[("limit", "1"), ("limit", "2")])
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/limit"]


async def test_a_far_off_instant_is_only_a_bound(client: AsyncClient) -> None:
    for path, name, instant in product(("/v1/jobs", "/v1/dead-letters"), ("since", "until"), FAR_OFF):
        assert (await client.get(path, params={name: instant})).status_code == 200, instant


async def test_dead_letters_come_newest_death_first_and_by_filter(world: World, client: AsyncClient) -> None:
    first, second = await world.run(2)
    [other] = await world.run(kind="test.job")
    await world.bury([second])
    await world.bury([first])
    await world.bury([other], Reason.TIMED_OUT)
    ids = [str(job.id) for job in (other, first, second)]
    for limit in (1, 2, 3):
        assert await all_ids(client, "/v1/dead-letters", limit=limit) == ids
    assert await all_ids(client, "/v1/dead-letters", reason="timed_out") == ids[:1]
    assert await all_ids(client, "/v1/dead-letters", fingerprint="f" * 16, kind="test.job", queue="default") == ids
    assert await all_ids(client, "/v1/dead-letters", fingerprint="e" * 16) == []
    [died_first] = [letter["died_at"] for letter in (await get(client, "/v1/dead-letters"))["data"]][2:]
    assert await all_ids(client, "/v1/dead-letters", until=died_first) == []
    assert await all_ids(client, "/v1/dead-letters", since=died_first) == ids


async def test_dead_letters_of_one_instant_are_listed_once_each(world: World, client: AsyncClient) -> None:
    ids = await world.die(9)
    await world.execute("UPDATE dead_letters SET died_at = $1", datetime.now(UTC))
    assert await all_ids(client, "/v1/dead-letters", limit=2) == [str(i) for i in ids[::-1]]


async def test_a_search_among_dead_letters_stops_where_it_said(world: World) -> None:
    ids = await world.die(12)
    await world.execute("UPDATE dead_letters SET died_at = $1", datetime.now(UTC))
    filters = DeadFilter(fingerprint="e" * 16)
    page = await reading.page_dead_letters(world.db, filters, 5, None, look_max=10)
    assert page.ids == []
    assert page.stopped is not None
    assert page.stopped[1] == ids[2]
    assert (await reading.page_dead_letters(world.db, filters, 5, page.stopped, look_max=10)).stopped is None


async def test_a_job_that_no_table_holds_poisons_no_list(world: World, client: AsyncClient) -> None:
    [lost, kept] = await world.submit(2)
    await world.execute("DELETE FROM outbox WHERE job_id = $1", lost)
    shown = (await get(client, "/v1/jobs"))["data"]
    assert [(job["id"], job["state"]) for job in shown] == [(str(kept), "queued"), (str(lost), None)]
    assert (await get(client, f"/v1/jobs/{lost}/explanation"))["reason"] == "homeless"


async def test_a_page_reads_an_index_backwards_and_sorts_nothing(db: Database) -> None:
    for name in PAGES:
        plan = await _plan(db, name, shared=name in {"page_outbox", "page_leases"})
        assert "Backward" in plan, plan
        assert "Sort  (" not in plan, plan
        assert "Seq Scan" not in plan, plan


async def _plan(db: Database, name: str, *, shared: bool) -> str:
    """The plan of a page over every id, as it is when tables are large."""
    values = ["'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'00000000-0000-0000-0000-000000000000'"]
    values += ["NULL", "NULL", "51", "20000", *(["'queued'"] if shared else [])]
    statement = re.sub(r"\$(\d)", lambda found: values[int(found[1]) - 1], sql(name))
    async with db.session() as connection:
        await connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        rows = await connection.fetch("EXPLAIN " + statement)
        await connection.execute("RESET ALL")
    return "\n".join(row[0] for row in rows)
