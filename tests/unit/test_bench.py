"""What a measurement says is what was measured: costs, limits, whose processor time it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import chart
from bench.figures import Figure
from bench.meters import Reading, cost
from bench.processes import cpu_seconds, memory_mb, role_of, tree
from bench.soak import Sample, growth_of


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


def test_a_picture_shows_ours_and_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "OUT", tmp_path)
    measured = {"end_to_end_per_s": 10_000, "redis_off_ratio": 1.5, "arq_per_s": 2_000, "cpu_ms_per_job_api": 0.02}
    measured |= {"limit_tasks_per_s": 99_999, "posts_per_s": 88_888}

    drawn = chart.write([Figure(key, "", value) for key, value in measured.items()]).read_text()

    for text in ("Outlast", "10,000", "15,000", "arq", "2,000", "api", "0.020"):
        assert text in drawn
    for text in ("99,999", "88,888", "http://fonts", "https://"):
        assert text not in drawn


def test_memory_is_told_of_the_largest_process_of_a_role() -> None:
    told = memory_mb(os.getpid())
    assert sum(told.values()) > 10


@pytest.mark.parametrize(("last", "holds"), [(100.0, True), (109.0, True), (120.0, False)])
def test_a_soak_compares_the_last_third_with_the_middle_one(last: float, holds: bool) -> None:
    memory = [50.0] * 3 + [100.0] * 3 + [last] * 3
    samples = [Sample({"api": one, "relay": one, "worker": one}, 0, 1.0, 0) for one in memory]
    assert [one.holds for one in growth_of(samples)] == [holds] * 3
