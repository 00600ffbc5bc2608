"""However many relays there are and however they end: one live entry for a waiting job, and a copy does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from app.failpoints import Action, Point
from app.transport import keys
from tests.fundamentals.scale import scaled
from tests.processes import Process, wait_until
from tests.scenarios.premises import STREAM, Premises

pytestmark = pytest.mark.timeout(600)  # processes start, several a test

JOBS = scaled(300, 1_000)


def test_three_relays_publish_each_of_many_jobs_once(premises: Premises) -> None:
    """Three replicas of a relay, each with a guard inside its own process only, sent every event three times."""
    premises.work()
    premises.relay(3)

    ids = premises.submit(JOBS)

    premises.until_done(ids)
    premises.performed_once(ids)
    assert 0 < premises.calls("xadd") <= JOBS


def test_a_leader_killed_in_the_midst_of_publishing_leaves_no_copy_behind(premises: Premises) -> None:
    """A replica killed at work made its successor send again what it had sent."""
    premises.work()
    premises.relay(2)
    first = premises.until_led()

    ids = premises.submit(JOBS)
    wait_until(lambda: premises.calls("xadd") > 0, what="the first entries")
    leader(premises).kill()
    premises.relays = [relay for relay in premises.relays if relay.alive()]
    ids += premises.submit(JOBS)

    wait_until(lambda: premises.until_led().id != first.id, 60, what="another leader")
    premises.until_done(ids)
    premises.performed_once(ids)
    assert premises.calls("xadd") <= len(ids)


def test_a_relay_that_dies_between_publishing_and_remembering_has_its_entries_found_by_the_next(
    premises: Premises,
) -> None:
    """A relay died between the send and its mark; the event went out again and the work was done again."""
    premises.work()
    premises.relay(2)
    obeyed = premises.fired(Point.RELAY_AFTER_PUBLISH, "default")
    premises.order(Action.KILL, Point.RELAY_AFTER_PUBLISH, "default")

    ids = premises.submit(20, hold=True)

    wait_until(lambda: premises.fired(Point.RELAY_AFTER_PUBLISH, "default") > obeyed, 30, what="the relay's death")
    premises.until_held(20)
    looks = premises.calls("xinfo|stream")
    premises.until_led()
    wait_until(lambda: premises.calls("xinfo|stream") > looks + 3, 30, what="some looks of the new leader")
    assert premises.calls("xadd") == premises.length() == 20
    publish_copy(premises, ids[0])
    premises.go_on()
    premises.until_done(ids)
    premises.until_empty()
    premises.performed_once(ids)
    premises.relays = [relay for relay in premises.relays if relay.alive()]


def test_a_second_copy_of_an_entry_costs_nothing_whenever_it_comes(premises: Premises) -> None:
    """Both copies of an event were worked on, one after the other or by two workers at once."""
    premises.work(2)
    [running] = premises.submit(1, hold=True)
    premises.until_held(1)
    publish_copy(premises, running)
    publish_copy(premises, running, attempt=1)
    wait_until(lambda: premises.length() == 1, what="the copies gone and the entry of the running job kept")
    premises.go_on()
    premises.until_done([running])
    publish_copy(premises, running)

    premises.until_empty()
    premises.performed_once([running])
    assert premises.charged([running]) == {"attempts": 1, "retries": 0, "crashes": 0}


def test_copies_of_a_job_whose_time_has_not_come_start_nothing(premises: Premises) -> None:
    """A copy left over in the broker started a job inside its back-off, or before its time."""
    premises.work()
    [job] = premises.submit(1, delay_seconds=3_600)
    for attempt in range(3):
        publish_copy(premises, job, attempt=attempt)

    premises.until_empty()
    assert (premises.client.job(job)["state"], premises.client.job(job)["attempt"]) == ("scheduled", 0)
    premises.client.cancel(job)
    publish_copy(premises, job)
    premises.until_empty()
    assert premises.journal.count("start") == 0


def test_copies_of_a_job_that_fails_and_backs_off_add_no_start(premises: Premises) -> None:
    """The first of two events of one job failed; the outcome depended on which of them a worker saw first."""
    premises.work()
    [job] = premises.submit(1, kind="test.flaky", plan={"fail_times": 2})

    def copied_to_its_end() -> bool:
        for attempt in range(3):
            publish_copy(premises, job, attempt=attempt)
        return premises.count_done([job]) == 1

    wait_until(copied_to_its_end, 60, what="the job done")

    premises.until_empty()
    assert [line[1] for line in premises.journal.lines("start")] == ["1", "2", "3"]
    assert premises.charged([job]) == {"attempts": 3, "retries": 2, "crashes": 0}


def leader(premises: Premises) -> Process:
    rows: list[Any] = premises.sql("SELECT pid FROM workers WHERE id = $1", premises.until_led().id)
    return next(relay for relay in premises.relays if relay.pid == rows[0]["pid"])


def publish_copy(premises: Premises, job: str, *, attempt: int = 0) -> None:
    premises.broker("XADD", STREAM, "*", keys.JOB_FIELD, job, keys.ATTEMPT_FIELD, attempt)
