"""What a measurement says is what was measured: costs, limits, whose processor time it was."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.figures import Figure
from bench.meters import Reading, cost
from bench.processes import cpu_seconds, role_of, tree


def test_a_cost_is_what_was_done_between_two_readings_for_each_job() -> None:
    before = Reading(statements=100, wal_bytes=5_000, redis_trips=10, cpu_seconds={"api": 1.0})
    after = Reading(statements=160, wal_bytes=8_000, redis_trips=60, cpu_seconds={"api": 1.5, "worker": 0.25})

    each = cost(before, after, 1_000)

    assert (each.statements, each.wal_bytes, each.redis_trips) == (0.06, 3.0, 0.05)
    assert each.cpu_ms == {"api": 0.5, "worker": 0.25}


@pytest.mark.parametrize(
    ("value", "least", "most", "holds"),
    [
        (1.0, 1.0, None, True),
        (0.9, 1.0, None, False),
        (5.0, None, 5.0, True),
        (5.1, None, 5.0, False),
        (9.0, None, None, True),
    ],
)
def test_a_figure_is_held_to_its_limit(value: float, least: float | None, most: float | None, holds: bool) -> None:
    assert Figure("key", "what", value, least=least, most=most).holds is holds


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("python -m workers.main worker --processes 1", "worker"),
        ("python -m workers.child 4711", "worker"),
        ("python -m workers.main relay", "relay"),
        ("python -m workers.main api --port 1", "api"),
        ("postgres: outlast postgres 127.0.0.1(5) idle", "postgres"),
        ("/usr/lib/postgresql/bin/postgres -D data", "postgres"),
        ("valkey-server *:6379", "redis"),
        ("python -m workers.main dev", "other"),
    ],
)
def test_processor_time_is_of_whoever_used_it(command: str, role: str) -> None:
    assert role_of(command) == role


def test_the_time_of_an_ended_child_is_not_lost() -> None:
    me = os.getpid()
    before = sum(cpu_seconds(me).values())

    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)

    assert sum(cpu_seconds(me).values()) - before >= 0.29
    assert tree(me)[0] == me
