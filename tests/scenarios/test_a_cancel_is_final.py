"""Whenever a job is cancelled, whatever becomes of its worker: the answer says how it ends, and it starts no more."""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from app.failpoints import Action, Point, fired, order, pid_of
from tests.fundamentals.scale import scaled
from tests.processes import children, wait_until
from tests.scenarios.premises import Premises
from tests.scenarios.told_jobs import LEASE_SECONDS, ToldJobs

# They see the relay at work also on a busy machine, and leave to the broker what it is there for.
PATIENT = {"LEASE_SECONDS": "20", "SUSPECT_SECONDS": "10"}
JOBS = scaled(120, 1_000)
LONG_BACKOFF_SECONDS = 1.0
LATE_EFFECTS = (
    "SELECT job_id, key FROM effects e JOIN outcomes o USING (job_id) "
    "WHERE o.state = 'cancelled' AND e.intent_at > o.finished_at"
)
WORDS = ("return", "pay", "again", "later", "bury")


def test_a_cancel_at_any_moment_of_a_short_job_is_answered_with_how_it_ends(premises: Premises) -> None:
    """A job that was answered as cancelled ran on, and one that was done became cancelled afterwards."""
    premises.work(1)
    client, dice = premises.client, random.Random(38)
    plans: list[dict[str, Any]] = [
        {"steps": ["one"], "sleep_seconds": 0.02},
        {"steps": ["one"], "sleep_seconds": 0.02},
        {"fail_times": 1},
        {"fatal": True},
    ]

    def cancelled(nth: int) -> tuple[str, list[int], str]:
        plan = plans[nth % len(plans)]
        kind = "test.steps" if "steps" in plan else "test.flaky"
        [job_id] = premises.submit(kind=kind, plan=plan | {"steps": plan.get("steps", []), "hold": []})
        time.sleep(dice.uniform(0, 0.06))
        calls = [pair.submit(client.http.post, f"/v1/jobs/{job_id}/cancel") for _ in range(1 + nth // len(plans) % 2)]
        codes = [call.result().status_code for call in calls]
        return job_id, codes, client.job(job_id)["state"]

    with ThreadPoolExecutor(8) as callers, ThreadPoolExecutor(16) as pair:
        answers = list(callers.map(cancelled, range(JOBS)))

    starts = premises.journal.count("start")
    time.sleep(2 * LONG_BACKOFF_SECONDS)  # a retry that was still to come would have come
    seen: set[int] = set()
    for job_id, codes, state in answers:
        assert len(set(codes)) == 1, f"both were told the same: {codes}"
        assert state in ({"cancelled"} if codes[0] == 200 else {"done", "dead"}), (codes, state)
        assert client.job(job_id)["state"] == state
        ends = [attempt["end"] for attempt in client.timeline(job_id)["attempts"]]
        assert sum(end in ("done", "cancelled") for end in ends) <= 1
        seen.update(codes)
    assert premises.journal.count("start") == starts
    assert premises.sql(LATE_EFFECTS) == []
    print(sum(codes[0] == 200 for _, codes, _ in answers), "of", JOBS, "cancelled")
    assert 200 in seen


def test_what_a_cancelled_run_does_after_it_was_cancelled_counts_for_nothing(
    premises: Premises, tmp_path: Path
) -> None:
    """The failure of a cancelled run put its job back into the queue, and an entry already delivered started it."""
    told = ToldJobs(premises)
    orders = tmp_path / "orders"
    orders.mkdir(mode=0o700)
    worker = told.worker(FAILPOINTS=str(orders), WORKER_CONCURRENCY=str(len(WORDS)), **PATIENT)
    running = {word: told.submit(word, kind="told.thread") for word in WORDS}
    told.until_started(*running)
    unread = told.submit("unread")
    told.until_published(unread)

    for job_id in (*running.values(), unread):
        assert told.client.cancel(job_id)["state"] == "cancelled"
    for word in WORDS:
        told.tell(word, 1, word)
    wait_until(lambda: worker.stderr.count('"event": "fenced"') >= len(WORDS), 30, what="the worker to be refused")
    told.until_empty()

    order(orders, Action.STOP, Point.CLAIM_DELIVERED)
    delivered = told.submit("delivered")
    [stopped] = wait_until(lambda: fired(orders, Point.CLAIM_DELIVERED), 30, what="the delivery")
    assert told.client.cancel(delivered)["state"] == "cancelled"
    os.kill(pid_of(stopped), signal.SIGCONT)
    told.until_empty()

    assert sorted(told.lines("start")) == sorted((word, 1) for word in WORDS)
    assert told.lines("pay") == []
    for job_id in (*running.values(), unread, delivered):
        assert told.client.job(job_id)["state"] == "cancelled"


def test_a_cancelled_job_whose_worker_dies_before_it_hears_of_it_stays_cancelled(premises: Premises) -> None:
    """The rescue of a dead worker's jobs ran a job again that had been cancelled, or left it cancelling for ever."""
    told = ToldJobs(premises)
    worker = told.worker()
    jobs = {name: told.submit(name) for name in ("unheard", "orphan")}
    told.until_started(*jobs)

    pid = told.pid_of("unheard")
    os.kill(pid, signal.SIGSTOP)
    assert told.client.cancel(jobs["unheard"])["state"] == "cancelled"
    os.kill(pid, signal.SIGKILL)
    told.until_started("orphan", attempt=2)

    for each in (worker.pid, *children(worker.pid)):
        os.kill(each, signal.SIGKILL)
    assert told.client.cancel(jobs["orphan"])["state"] == "cancelled", "with nobody there to hear it"
    told.worker()
    told.tell("later", 1, "return")
    told.client.wait_for(told.submit("later"), "done")
    told.until_empty(10 * LEASE_SECONDS)

    assert sorted(told.lines("start")) == [("later", 1), ("orphan", 1), ("orphan", 2), ("unheard", 1)]
    assert {told.client.job(job_id)["state"] for job_id in jobs.values()} == {"cancelled"}
