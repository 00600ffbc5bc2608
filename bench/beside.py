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
ON_POSTGRES = ("pgqueuer",)
ON_REDIS = ("arq", "saq", "taskiq")
SETUP_SECONDS_MAX = 300
ROUND_SECONDS_MAX = 120


def measure(per_second: float, jobs: int, rounds: int) -> list[Figure]:
    """What they do of it, bulk enqueue included, and ours, `per_second`, as a multiple of that.

    Raises `RuntimeError` when one cannot be set up, or loses a job.
    """
    rates = {peer: statistics.median(_rates(peer, jobs, rounds)) for peer in (*ON_POSTGRES, *ON_REDIS)}
    best_on_redis = max(rates[peer] for peer in ON_REDIS)
    return [
        *(Figure(f"{peer}_per_s", f"{peer}: no-op jobs a second, enqueue to end", rates[peer]) for peer in rates),
        Figure("vs_pgqueuer", "ours as a multiple of PgQueuer", per_second / rates["pgqueuer"], least=1.2),
        Figure("vs_best_redis_peer", "ours as a multiple of the best on Redis", per_second / best_on_redis, least=10),
    ]


def _rates(peer: str, jobs: int, rounds: int) -> list[float]:
    python = _environment(PEERS / peer)
    return [_round(peer, python, jobs) for _ in range(rounds)]


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
