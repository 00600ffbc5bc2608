"""What Redis refuses, forgets or has no room for is in PostgreSQL, and comes back without anybody's help."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.fundamentals.scale import scaled
from tests.processes import wait_until
from tests.scenarios.premises import STREAM, Premises

pytestmark = pytest.mark.timeout(600)  # processes start, several a test

AWAY_SECONDS = scaled(2, 30)
MANY = scaled(500, 1_500)
ROUND = scaled(500, 10_000)
SLOTS = 100

REFUSALS = {
    "full": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "read-only": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
}


def _flush(premises: Premises) -> None:
    premises.broker("FLUSHALL")


def _delete_stream(premises: Premises) -> None:
    premises.broker("DEL", STREAM)


def _restart_empty(premises: Premises) -> None:
    premises.stop_redis(keeping_data=False)
    premises.start_redis()


@contextmanager
def refusing(premises: Premises, how: str) -> Iterator[None]:
    """A broker that answers, and takes no more."""
    begin, end = REFUSALS[how]
    premises.broker(*begin)
    try:
        yield
    finally:
        premises.broker(*end)


@pytest.mark.parametrize("how", REFUSALS)
def test_jobs_submitted_while_the_broker_refuses_writes_are_accepted_and_done(premises: Premises, how: str) -> None:
    """Error replies to a pipeline were not looked at: what was submitted while Redis was full was marked as sent."""
    premises.work()
    premises.until_ready()
    with refusing(premises, how):
        ids = premises.submit(100)
        premises.until_ready("degraded")
        ids += premises.submit(20)
    ids += premises.submit(20)

    premises.until_done(ids)
    premises.until_ready()
    premises.until_empty()
    premises.performed_once(ids)


@pytest.mark.parametrize("forget", [_flush, _delete_stream, _restart_empty])
def test_what_was_published_and_forgotten_is_published_again_and_done_once(
    premises: Premises, forget: Callable[[Premises], None]
) -> None:
    """The mark "published" was in one store, the message in the other; when that was emptied nothing ever ran."""
    premises.work()
    retrying = premises.submit(5, kind="test.flaky", plan={"fail_times": 1})
    held = premises.submit(SLOTS, hold=True)
    unread = premises.submit(SLOTS)
    premises.until_held(SLOTS - 5)
    wait_until(lambda: premises.length() > premises.journal.count("hold") + 50, 30, what="published and unread jobs")

    forget(premises)
    premises.go_on()

    premises.until_done(held + unread + retrying)
    premises.until_empty()
    starts = [line[0] for line in premises.journal.lines("start")]
    assert sorted(starts) == sorted(held + unread + 2 * retrying)
    assert premises.journal.count("perform") == len(held + unread)
    assert premises.charged(held + unread) == {"attempts": 2 * SLOTS, "retries": 0, "crashes": 0}


def test_jobs_that_wait_out_an_outage_without_workers_are_neither_buried_nor_lost(premises: Premises) -> None:
    """A short outage of the broker used up every row's publishing attempts, and all were parked as undeliverable."""
    premises.stop_workers()
    premises.stop_redis()
    try:
        ids = premises.submit(50)
        time.sleep(AWAY_SECONDS)  # the outage is the point: the relay tries again and again meanwhile
        assert {job["state"] for job in premises.client.http.get("/v1/jobs?limit=50").json()["data"]} == {"queued"}
    finally:
        premises.start_redis()
    premises.work()

    premises.until_done(ids)
    premises.performed_once(ids)


def test_more_jobs_than_a_stream_may_hold_wait_outside_and_none_is_trimmed(premises: Premises) -> None:
    """A cap on the stream's length dropped the oldest entries of a long outage, read or not."""
    premises.work()
    held = premises.submit(SLOTS, hold=True)
    premises.until_held(SLOTS)
    ids = premises.submit(MANY)
    wait_until(lambda: premises.length() > SLOTS, 30, what="published and unread jobs")
    lengths: list[int] = []

    premises.go_on()

    def done() -> bool:
        lengths.append(premises.length())
        return premises.count_done(ids) == MANY

    wait_until(done, 90, what="all of them done")
    premises.until_done(held)
    premises.performed_once(held + ids)
    assert max(lengths) < MANY / 2


def test_handled_entries_leave_nothing_behind_in_the_broker(premises: Premises) -> None:
    """An acknowledged entry left the pending list but not the stream, which grew until the server was full."""
    premises.work()
    kept: list[int] = []
    for _ in range(2):
        ids = premises.submit(ROUND, kind="test.flaky")
        premises.until_done(ids)
        premises.until_empty()
        kept.append(premises.broker("MEMORY", "USAGE", STREAM, "SAMPLES", 0))

    assert kept[1] <= kept[0] + 4_096
    assert premises.broker("XINFO", "GROUPS", STREAM)[0][3] <= len(premises.workers) + 1
