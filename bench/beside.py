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
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Figure
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

PEERS = Path(__file__).parent / "peers"
ON_POSTGRES = ("awa", "pgqueuer", "procrastinate")
ON_REDIS = ("arq", "docket", "saq", "streaq", "taskiq")
ONE_BY_ONE = {"procrastinate": 5}  # takes jobs singly: so many times fewer are enough
SETUP_SECONDS_MAX = 300
ROUND_SECONDS_MAX = 120


def measure(per_second: float, jobs: int, rounds: int) -> list[Figure]:
    """What they do of it, bulk enqueue included, and ours, `per_second`, as a multiple of that.

    One that cannot be set up, loses a job or takes too long is left out, and said so. Raises `RuntimeError` when none
    on Redis is left.
    """
    rates = {
        peer: statistics.median(found) for peer in (*ON_POSTGRES, *ON_REDIS) if (found := _rates(peer, jobs, rounds))
    }
    on_redis = [rates[peer] for peer in ON_REDIS if peer in rates]
    if not on_redis:
        raise RuntimeError("no library on Redis could be measured")
    figures = [Figure(f"{peer}_per_s", f"{peer}: no-op jobs a second, enqueue to end", rates[peer]) for peer in rates]
    for peer, least in (("pgqueuer", 1.2), ("awa", 3.0)):
        if peer in rates:
            figures.append(Figure(f"vs_{peer}", f"ours as a multiple of {peer}", per_second / rates[peer], least=least))
    best = per_second / max(on_redis)
    return [*figures, Figure("vs_best_redis_peer", "ours as a multiple of the best on Redis", best, least=10)]


def _rates(peer: str, jobs: int, rounds: int) -> list[float]:
    try:
        python = _environment(PEERS / peer)
        return [_round_or_again(peer, python, jobs // ONE_BY_ONE.get(peer, 1)) for _ in range(rounds)]
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{peer} is left out: {error}", file=sys.stderr)
        return []


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
