"""Replaying ten thousand dead letters is done beside the day's work, and goes on where it was stopped."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.fundamentals.scale import scaled
from tests.processes import wait_until
from tests.scenarios.premises import Premises

HANDLERS = ["tests.handlers.values"]
DEAD = scaled(200, 10_000)
RATE = scaled(5, 200)
FRESH = 10


def count(premises: Premises, statement: str) -> int:
    return premises.sql(f"SELECT count(*) FROM {statement}")[0][0]


def test_a_paced_replay_is_interrupted_run_again_and_passed_by_fresh_jobs(premises: Premises, tmp_path: Path) -> None:
    """The replay floods the queue: live jobs wait behind it, and stopping it half way leaves nobody knows what."""
    premises.worker(HANDLERS, WORKER_CONCURRENCY="4")
    fixed = tmp_path / "fixed"
    ids = premises.client.submit_all("value.until-fixed", [{"how": str(fixed)}] * DEAD)
    mine = f"job_id = ANY('{{{','.join(ids)}}}')"
    wait_until(lambda: count(premises, f"dead_letters WHERE {mine}") == DEAD, 120, what="the dead")
    fixed.touch()

    words = (
        "dead",
        "replay",
        "--kind",
        "value.until-fixed",
        "--reason",
        "fixed",
        "--yes",
        "--replay-id",
        tmp_path.name,
    )
    slowly = premises.stack.start(*words, "--rate", f"{RATE}/s", name="replay")
    actions = f"operator_actions WHERE {mine} AND action = 'replay'"
    wait_until(lambda: count(premises, actions), 60, what="the replay")
    for _ in range(FRESH):
        job_id = premises.client.submit("value.echo", 1)
        premises.client.wait_for(job_id, "done", seconds=30)
    assert slowly.alive(), "all of them were done while the replay was under way"

    slowly.send(signal.SIGINT)
    assert slowly.wait(30) == 130
    moved = count(premises, actions)
    assert 0 < moved < DEAD
    again = premises.stack.run(*words, "-o", "ids", seconds=120)
    assert again.returncode == 0, again.stderr
    premises.until_done(ids, 120)
    assert count(premises, actions) == DEAD
    assert premises.charged(ids) == {"attempts": 2 * DEAD, "retries": 0, "crashes": 0}
