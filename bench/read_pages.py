"""How fast every list page, job and dead letter answers over HTTP on top of a large history.

`python -m bench.read_pages [--outcomes N] [--dead N] [--waiting N] [--rounds N]` starts a PostgreSQL and an API of its
own in a temporary folder, loads the history, asks for every page and prints a table. With `OUTLAST_DATABASE_URL` set
it reads that database as it is. Exit 1 when the median of any page reaches 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import httpx
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from app.settings import Settings
from app.store.migrate import migrate
from bench.load_history import Sizes, load, sizes_from, talk
from workers.dev.embedded import free_port
from workers.dev.guard import spawn
from workers.dev.postgres import Postgres

LIMIT_MS = 50
START_SECONDS = 30
DEEP_PAGES = 40
ROUNDS = 20

STATES = ("queued", "scheduled", "retrying", "running", "dead", "done", "cancelled")


@contextmanager
def database(sizes: Sizes) -> Iterator[Settings]:
    """The database to read: the one that is set, or a fresh one with a history in it."""
    if "OUTLAST_DATABASE_URL" in os.environ:
        yield Settings()
        return
    with (
        tempfile.TemporaryDirectory(prefix="outlast-bench-") as folder,
        Postgres(Path(folder), durable=False) as server,
    ):
        settings = Settings(database_url=SecretStr(server.url))
        migrate(settings)
        asyncio.run(load(settings, sizes, talk))
        yield settings


@contextmanager
def api(settings: Settings) -> Iterator[httpx.Client]:
    """A client of an `outlast api` process of our own."""
    port = free_port()
    environment = {**os.environ, "OUTLAST_DATABASE_URL": settings.database_url.get_secret_value()}
    command = [sys.executable, "-m", "workers.main", "api", "--port", str(port)]
    process = spawn(command, signal.SIGKILL, env=environment, stdout=sys.stderr.buffer, stderr=sys.stderr.buffer)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            _wait_until_live(client)
            yield client
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def _wait_until_live(client: httpx.Client) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            client.get("/healthz").raise_for_status()
            return
        except httpx.TransportError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def paths(client: httpx.Client) -> dict[str, str]:
    """What is measured: a name and its path."""
    found = {"jobs": "/v1/jobs", "jobs, 200 a page": "/v1/jobs?limit=200"}
    found |= {f"jobs, {state}": f"/v1/jobs?state={state}" for state in STATES}
    found["jobs, done, of a kind"] = "/v1/jobs?state=done&kind=mail.send"
    found["jobs, of a queue"] = "/v1/jobs?queue=slow"
    found["jobs, done, of a kind that has none"] = "/v1/jobs?state=done&kind=no.such"
    found["jobs, of a kind that has none"] = "/v1/jobs?kind=no.such"
    found["jobs, queued, of a kind that has none"] = "/v1/jobs?state=queued&kind=no.such"
    found[f"jobs, done, page {DEEP_PAGES}"] = _deep(client, "/v1/jobs?state=done&limit=200")
    found["dead letters"] = "/v1/dead-letters"
    found["dead letters, 200 a page"] = "/v1/dead-letters?limit=200"
    found["dead letters, of a reason"] = "/v1/dead-letters?reason=timed_out"
    found["dead letters, of a fingerprint"] = "/v1/dead-letters?fingerprint=0000000000000007"
    found["dead letters, of one that is not there"] = "/v1/dead-letters?fingerprint=ff"
    found[f"dead letters, page {DEEP_PAGES}"] = _deep(client, "/v1/dead-letters?limit=200")
    return found | dict(_details(client))


def _details(client: httpx.Client) -> Iterator[tuple[str, str]]:
    for state in ("queued", "done", "dead"):
        listed = client.get(f"/v1/jobs?state={state}&limit=1").json()["data"]
        if listed:
            here = f"/v1/jobs/{listed[0]['id']}"
            yield f"job, {state}", here
            yield f"job, {state}, timeline", f"{here}/timeline"
            yield f"job, {state}, explanation", f"{here}/explanation"
            if state == "dead":
                yield "dead letter", f"/v1/dead-letters/{listed[0]['id']}"
    yield "metrics", "/metrics"
    yield "readyz", "/readyz"


def _deep(client: httpx.Client, path: str) -> str:
    """The path of the page after `DEEP_PAGES - 1` others, or of the last one."""
    deep = path
    for _ in range(DEEP_PAGES - 1):
        cursor = client.get(deep).json()["next_cursor"]
        if cursor is None:
            break
        deep = f"{path}&cursor={cursor}"
    return deep


def measure(client: httpx.Client, path: str, rounds: int) -> tuple[float, float, int]:
    """Median and 95th percentile of the milliseconds of one answer, and its bytes."""
    size, times = 0, list[float]()
    for _ in range(rounds):
        began = time.perf_counter()
        answer = client.get(path)
        times.append((time.perf_counter() - began) * 1_000)
        answer.raise_for_status()
        size = len(answer.content)
    return median(times), quantiles(times, n=20)[-1], size


def report(client: httpx.Client, rounds: int) -> bool:
    """Prints the table; whether the median of every page stays under the limit."""
    table = Table("page", "p50 ms", "p95 ms", "bytes", title=f"{rounds} requests each, one at a time")
    good = True
    for name, path in paths(client).items():
        p50, p95, size = measure(client, path, rounds)
        good = good and p50 < LIMIT_MS
        table.add_row(name, f"{p50:.1f}{'' if p50 < LIMIT_MS else ' !'}", f"{p95:.1f}", f"{size:,}")
    Console(width=100).print(table)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures every read over HTTP on a large history.")
    sizes_from(parser)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with database(Sizes(given.outcomes, given.dead, given.waiting)) as settings, api(settings) as client:
        return 0 if report(client, given.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
