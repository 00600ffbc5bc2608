"""Handlers that misbehave harm no other job, and are seen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.store.audit import conservation
from app.store.database import Database
from tests.client import Client, journal_of
from tests.fundamentals.conftest import Running
from tests.fundamentals.scale import scaled
from tests.handlers.misbehaving import DONE, GROWN_BYTES, RAISED, RESULTS, SECRET
from tests.processes import Process, is_running, wait_until
from workers.guarding.copies import EXIT_COPY

HANDLERS = ["tests.handlers.misbehaving", "tests.handlers.steps"]
ENDED = ("done", "dead", "cancelled")

TOO_LARGE = ("vast", "long")
IN_A_THREAD = ("sys.exit", "KeyboardInterrupt", "CancelledError", "StopIteration", "RecursionError", "unreadable")


@pytest.fixture
def transport() -> str:
    """One way a job can take is enough here."""
    return "redis"


def ended(client: Client, job_id: str) -> dict[str, Any]:
    """The job once it has ended, however it did."""
    return client.wait_for(job_id, *ENDED, seconds=30)


def said(process: Process, event: str) -> list[dict[str, Any]]:
    """The log lines of this event. Other writers share the stream: not every line is one of the log."""
    lines = (line for line in process.stderr.splitlines() if f'"event": "{event}"' in line and line.endswith("}"))
    return [json.loads(line[line.index("{") :]) for line in lines]


async def test_one_process_survives_every_misdeed_and_each_job_ends_as_designed(
    running: Running, db: Database, tmp_path: Path
) -> None:
    client, journal = running.client, tmp_path / "journal"
    # A list of a million numbers holds up everything for longer than the short lease of tests on a busy machine.
    running.stack.settings = running.stack.settings.model_copy(update={"lease_seconds": 15})
    worker = running.stack.worker(HANDLERS)
    await running.workers_entered(1)
    pid = ended(client, client.submit("bad.fork-in-a-thread", {"how": "", "journal": str(journal)}))["result"]

    results = {how: client.submit("bad.result", {"how": how}) for how in RESULTS}
    shape = client.submit("bad.shape", {"how": "another"})
    raised = {how: client.submit("bad.raise", {"how": how}) for how in RAISED}
    threaded = {how: client.submit("bad.raise-in-a-thread", {"how": how}) for how in IN_A_THREAD}
    done = {how: client.submit("bad.do", {"how": how, "journal": str(journal)}) for how in DONE}
    stubborn = client.submit("bad.stubborn", {"how": "", "journal": str(tmp_path / "never")})
    stuck = client.submit("bad.outlive", {"how": "", "journal": str(tmp_path / "stuck")})

    for how, job_id in results.items():
        expected = "result_too_large" if how in TOO_LARGE else "invalid_output"
        assert (how, ended(client, job_id)["reason"]) == (how, expected)
    assert ended(client, shape)["reason"] == "invalid_output"
    for how, job_id in [*raised.items(), *threaded.items()]:
        job = ended(client, job_id)
        assert (how, job["reason"], job["attempt"]) == (how, "permanent_error", 1)
        assert len(job["error"]["message"]) <= 2_000
    assert [ended(client, job_id)["result"] for job_id in done.values()] == [pid] * len(done)
    assert ended(client, stubborn)["reason"] == "timed_out"
    assert ended(client, stuck)["result"] == "in time"
    assert {line[0] for line in journal_of(journal).lines("copy")} == {str(EXIT_COPY)}
    assert SECRET not in json.dumps(ended(client, raised["secret"]))
    assert SECRET not in worker.stderr
    assert await conservation(db) == []

    # The process that went through all of it still takes jobs, and still stops when it is told to.
    last = client.submit("bad.do", {"how": "fork and return", "journal": str(journal)})
    assert ended(client, last)["result"] == pid
    wait_until(lambda: said(worker, "signal_handlers_changed"), what="the signal handlers to be put right")
    assert worker.stop(15) == 0
    assert not is_running(pid)


async def test_a_handler_that_blocks_its_event_loop_keeps_its_lease_and_is_seen(
    running: Running, db: Database, tmp_path: Path
) -> None:
    client, stack = running.client, running.stack
    spinning, holding = tmp_path / "spinning", tmp_path / "holding"
    lease_seconds = 2
    # The heartbeat's thread has to fight for the interpreter, and on a busy machine it needs more than moments.
    stack.settings = stack.settings.model_copy(update={"lease_seconds": lease_seconds, "suspect_seconds": 1.5})
    first = stack.worker(HANDLERS)
    second = stack.worker(HANDLERS, env={"OUTLAST_QUEUES": "other"})
    await running.workers_entered(2)
    neighbours = client.submit_all("test.steps", [{"journal": str(tmp_path / "n"), "sleep_seconds": 1}] * 4)
    wait_until(lambda: journal_of(tmp_path / "n").count("start") == 4, what="the neighbours")
    spin = client.submit("bad.block", {"how": "spin", "journal": str(spinning), "seconds": 3 * lease_seconds})
    wait_until(lambda: journal_of(spinning).count("start"), what="the spinning job")

    # The other worker loses what it runs: not even its heartbeat goes on.
    hold = client.submit(
        "bad.block", {"how": "hold", "journal": str(holding), "seconds": 3 * lease_seconds}, queue="other"
    )

    job = client.wait_for(spin, "done", seconds=30)
    assert (job["attempt"], job["result"]) == (1, {"attempt": 1, "performed": 1})
    assert journal_of(spinning).count("start") == journal_of(spinning).count("perform") == 1
    for neighbour in neighbours:
        assert client.wait_for(neighbour, "done")["attempt"] == 1
    blocked = [line for line in said(first, "loop_blocked") if line.get("job") == spin]
    assert [(line["kind"], line["attempt"]) for line in blocked] == [("bad.block", 1)]
    assert blocked[0]["where"][-1].endswith(" spin")
    wait_until(lambda: said(first, "loop_free_again"), what="the end of the episode")

    job = client.wait_for(hold, "done", seconds=30)
    assert (job["attempt"], job["crashes"], job["result"]) == (2, 1, {"attempt": 2, "performed": 2})
    assert [attempt["end"] for attempt in client.timeline(hold)["attempts"]] == ["lost", "done"]
    wait_until(lambda: said(second, "process_stood_still"), what="the holder to go on")
    assert all(line["where"] for line in said(second, "process_stood_still"))
    assert journal_of(holding).lines("perform") == [["2"]]
    assert client.job(hold) == job
    assert await conservation(db) == []


async def test_code_that_outlives_its_time_out_changes_nothing_and_a_killed_process_leaves_its_cause(
    running: Running, db: Database, tmp_path: Path
) -> None:
    client, journal = running.client, tmp_path / "journal"
    slots = scaled(2, 4)
    running.stack.worker(HANDLERS, env={"OUTLAST_WORKER_CONCURRENCY": str(slots)})
    await running.workers_entered(1)
    jobs = client.submit_all("bad.outlive", [{"how": "", "journal": str(journal)}] * scaled(2, 5) * slots)

    wait_until(
        lambda: [a["end"] for job in jobs for a in client.timeline(job)["attempts"]] == ["timed_out"] * slots,
        what="the first time-outs",
    )
    assert journal_of(journal).count("start") == slots, "stuck code keeps its slot"

    Path(f"{journal}.go").touch()
    for job_id in jobs:
        job = client.wait_for(job_id, "done")
        assert job["attempt"] <= 2
    paid = [line[0] for line in journal_of(journal).lines("pay")]
    assert sorted(paid) == sorted(jobs)

    # Memory that is taken until the process is killed: the timeline says so, and how much it was.
    job = client.wait_for(client.submit("bad.grow", {"how": ""}), "done")
    assert (job["attempt"], job["crashes"]) == (2, 1)
    cause = client.timeline(job["id"])["attempts"][0]["cause"]
    found = re.search(r"killed by signal 9, (\d+) MiB at most", cause)
    assert found is not None, cause
    assert int(found[1]) >= GROWN_BYTES / 2**20
    assert await conservation(db) == []
