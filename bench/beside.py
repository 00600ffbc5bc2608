"""Other libraries beside ours, in the same run, on servers of the same kind, each in a locked environment of its own.

A peer is a folder of `bench/peers` with `pyproject.toml`, `uv.lock` and `peer.py`, which is told how many no-op jobs
to enqueue and to drain, and where its servers are, and prints a line of JSON: how many it has done, and the seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import end_to_end
from bench.figures import Figure
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

PEERS = Path(__file__).parent / "peers"
ON_POSTGRES = ("awa", "pgqueuer", "procrastinate")
ON_REDIS = ("arq", "docket", "saq", "streaq", "taskiq")
ONE_BY_ONE = {"procrastinate": 5}  # takes jobs singly: so many times fewer are enough
LEAST = {"pgqueuer": 1.2, "awa": 3.0}
SETUP_SECONDS_MAX = 300
ROUND_SECONDS_MAX = 120


class _Turn(NamedTuple):
    """Jobs a second that ours did and that another library did soon after."""

    ours: float
    theirs: float


async def measure(jobs: int, peer_jobs: int, rounds: int) -> list[Figure]:
    """What they do of `peer_jobs` a second, bulk enqueue included, and what ours does of `jobs`, in turn.

    One that cannot be set up, or that twice loses a job or takes too long, is left out, and said so. Raises
    `RuntimeError` when none on Redis is left.
    """
    ready = {peer: python for peer in (*ON_POSTGRES, *ON_REDIS) if (python := _environment_or_none(peer))}
    found: dict[str, list[_Turn]] = {peer: [] for peer in ready}
    for _ in range(rounds):
        for group in (ON_POSTGRES, ON_REDIS):
            ours = await end_to_end.alone(jobs)
            for peer in group:
                if peer in found:
                    rate = _rate(peer, ready[peer], peer_jobs // ONE_BY_ONE.get(peer, 1))
                    found[peer].append(_Turn(ours, rate)) if rate else found.pop(peer)
    rates = {peer: statistics.median(turn.theirs for turn in turns) for peer, turns in found.items()}
    on_redis = [peer for peer in ON_REDIS if peer in rates]
    if not on_redis:
        raise RuntimeError("no library on Redis could be measured")
    best = max(on_redis, key=rates.__getitem__)
    return [
        *(Figure(f"{peer}_per_s", f"{peer}: no-op jobs a second, enqueue to end", rates[peer]) for peer in rates),
        *(
            Figure(f"vs_{peer}", f"ours as a multiple of {peer}", _multiple(found[peer]), least=least)
            for peer, least in LEAST.items()
            if peer in found
        ),
        Figure(
            "vs_best_redis_peer", f"ours as a multiple of the best on Redis, {best}", _multiple(found[best]), least=10
        ),
    ]


def _multiple(turns: Sequence[_Turn]) -> float:
    return statistics.median(turn.ours / turn.theirs for turn in turns)


def _environment_or_none(peer: str) -> Path | None:
    try:
        return _environment(PEERS / peer)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{peer} is left out: {error}", file=sys.stderr)
        return None


def _rate(peer: str, python: Path, jobs: int) -> float | None:
    try:
        return _round_or_again(peer, python, jobs)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{peer} is left out: {error}", file=sys.stderr)
        return None


def _round_or_again(peer: str, python: Path, jobs: int) -> float:
    """One that hangs, or loses a job, now and then, is given another chance."""
    try:
        return _round(peer, python, jobs)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{peer} once more: {error}", file=sys.stderr)
        return _round(peer, python, jobs)


def _round(peer: str, python: Path, jobs: int) -> float:
    """On fresh servers, as durable as ours."""
    with (
        tempfile.TemporaryDirectory(prefix="outlast-bench-") as folder,
        Postgres(Path(folder)) as postgres,
        Redis(Path(folder)) as redis,
    ):
        servers = {"PEER_POSTGRES_URL": postgres.url, "PEER_REDIS_URL": redis.url}
        told = _told([str(python), "peer.py", str(jobs)], PEERS / peer, servers, ROUND_SECONDS_MAX)
    answer = json.loads(told.splitlines()[-1])
    if answer["done"] != jobs:
        raise RuntimeError(f"{peer} has done {answer['done']} of {jobs} jobs")
    return jobs / answer["seconds"]


def _environment(folder: Path) -> Path:
    """The interpreter of the peer's environment, made from its lock."""
    uv = shutil.which("uv") or str(Path(sys.prefix).parent / ".venv-tools" / "bin" / "uv")
    _told([uv, "sync", "--quiet", "--frozen", "--compile-bytecode"], folder, {}, SETUP_SECONDS_MAX)
    return folder / ".venv" / "bin" / "python"


def _told(command: list[str], folder: Path, environment: Mapping[str, str], seconds_max: float) -> str:
    outer = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    ended = subprocess.run(
        command, cwd=folder, env={**outer, **environment}, check=False, capture_output=True, text=True,
        timeout=seconds_max,
    )  # fmt: skip
    if ended.returncode:
        raise RuntimeError(f"{command[0]} in {folder.name} exited with {ended.returncode}: {ended.stderr[-1000:]}")
    return ended.stdout
