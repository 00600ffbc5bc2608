"""Workers killed, frozen past their lease, and stopped: every job is done, and each effect is filed under one key."""

from __future__ import annotations

import pytest

from tests.containers.books import COUNT, close
from tests.containers.callers import Callers
from tests.containers.docker_cli import until
from tests.containers.site import Crew

pytestmark = pytest.mark.timeout(240)

HELD = 5
OUTCOMES = """
SELECT o.job_id, o.attempt, o.worker_id, o.finished_at FROM outcomes o JOIN jobs j ON j.id = o.job_id
WHERE starts_with(j.input->>'name', $1) ORDER BY o.job_id
"""


def test_a_killed_worker_costs_a_crash_and_no_effect_that_is_on_record(crew: Crew) -> None:
    victim = crew.workers[0]
    with Callers(crew, "killed", effects=3, pause_seconds=0.2) as callers:
        with callers.steadily(40):
            until(lambda: len(callers.accepted) > 200 and crew.leases(victim) >= HELD, 60, what="jobs to lose")
            assert victim.kill() == 128 + 9
            until(lambda: crew.leases(victim) == 0, 60, what="the rescue of its jobs")
        books = close(callers)
    assert books.crashes >= 1
    assert books.retries == 0


def test_a_worker_frozen_past_its_lease_writes_nothing_when_it_thaws(crew: Crew) -> None:
    frozen = crew.workers[1]
    with Callers(crew, "frozen", effects=3, pause_seconds=0.2) as callers:
        with callers.steadily(40):
            until(lambda: len(callers.accepted) > 200 and crew.leases(frozen) >= HELD, 60, what="jobs to freeze")
            frozen.pause()
            until(lambda: crew.leases(frozen) == 0, 60, what="the end of its leases")
        wanted = len(callers.accepted)
        until(lambda: int(crew.sql(COUNT, "frozen-")[0][0]) == wanted, 90, what="all done without it")
        before, filed = crew.sql(OUTCOMES, "frozen-"), crew.ground.filings("frozen-")
        frozen.unpause()
        crew.until_ok()
        until(lambda: "lease_lost" in frozen.log() or "fenced" in frozen.log(), 60, what="the thawed worker to notice")
        books = close(callers)
        assert crew.sql(OUTCOMES, "frozen-") == before
        assert crew.ground.filings("frozen-") == filed
    assert books.crashes >= HELD


def test_a_worker_that_is_stopped_finishes_what_it_runs_and_nothing_is_charged(crew: Crew) -> None:
    leaving = crew.workers[2]
    with Callers(crew, "stopped", effects=2, pause_seconds=0.5) as callers:
        with callers.steadily(40):
            until(lambda: len(callers.accepted) > 200 and crew.leases(leaving) >= HELD, 60, what="jobs to finish")
            assert leaving.stop() == 0, leaving.log()
            assert crew.leases(leaving) == 0
        books = close(callers)
    books.nothing_charged()
    assert books.attempts == books.jobs
