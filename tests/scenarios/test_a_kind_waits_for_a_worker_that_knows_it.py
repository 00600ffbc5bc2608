"""Not having the code is a fact about a worker, not a result of the job."""

from __future__ import annotations

import time

import pytest

from tests.processes import wait_until
from tests.scenarios.premises import HANDLERS, Premises

pytestmark = pytest.mark.timeout(600)  # processes start, several a test

OLD = ["tests.handlers.arithmetic"]
KIND = "test.steps"


def test_a_rolling_deploy_runs_new_kinds_on_new_workers_only(premises: Premises) -> None:
    """During a deploy old workers took jobs of the new kind, and marked them done, or used up their attempts."""
    premises.stop_workers()
    old = premises.worker(OLD)
    premises.worker(HANDLERS, WORKER_CONCURRENCY="3")

    new_kind = premises.submit(100)
    old_kind = premises.client.submit_all("test.double", [{"value": number} for number in range(50)])

    premises.until_done(new_kind + old_kind)
    premises.performed_once(new_kind)
    charged = premises.charged(new_kind + old_kind)
    assert charged == {"attempts": 150, "retries": 0, "crashes": 0}
    assert '"error"' not in old.stderr


def test_a_kind_that_no_live_worker_knows_waits_explained_and_keeps_nobody_else_waiting(premises: Premises) -> None:
    """With only old workers left the jobs vanished, one retry after the other; or they blocked the queue's head."""
    premises.stop_workers()
    premises.worker(OLD)
    unknown = premises.submit(5, priority=0)
    known = premises.client.submit_all("test.double", [{"value": number} for number in range(50)])
    premises.until_done(known)
    time.sleep(2 * premises.settings.backoff_cap_seconds)  # longer than any retry would have waited

    jobs = [premises.client.job(job) for job in unknown]
    assert {(job["state"], job["attempt"], job["crashes"]) for job in jobs} == {("queued", 0, 0)}
    explanation = premises.client.http.get(f"/v1/jobs/{unknown[0]}/explanation").json()
    assert (explanation["reason"], explanation["who_acts"]) == ("kind_unknown", "operator")
    listed = premises.client.http.get("/v1/jobs", params={"state": "queued", "kind": KIND}).json()["data"]
    assert {job["id"] for job in listed} == set(unknown)
    assert 'outlast_jobs_waiting{queue="default"} 5.0' in premises.client.http.get("/metrics").text

    premises.worker(HANDLERS)
    premises.until_done(unknown)
    premises.performed_once(unknown)


def test_a_kind_that_was_never_published_is_refused_where_it_is_submitted(premises: Premises) -> None:
    """A typing error in a job's type was accepted, and found by nobody."""
    answer = premises.client.http.post("/v1/jobs", json={"kind": "test.stepz", "input": {}})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown-kind")


def test_a_worker_that_cannot_load_its_handlers_takes_nothing(premises: Premises) -> None:
    """A broken deploy consumed the queue with workers that had no handler at all."""
    premises.stop_workers()
    broken = premises.stack.worker(["tests.handlers.no_such_module"])
    ids = premises.submit(3)

    assert broken.wait(240) != 0
    wait_until(lambda: premises.client.job(ids[0])["state"] == "queued", what="a job that waits")
    premises.work()
    premises.until_done(ids)
    premises.performed_once(ids)
