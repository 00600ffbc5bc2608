"""`make up` and `make down`: the example's tickets are done by what stands in compose/, and nothing is left of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.containers.builds import OURS
from tests.containers.docker_cli import docker, until
from tests.containers.site import Ground
from tests.processes import ROOT
from workers.dev.embedded import free_port

pytestmark = pytest.mark.timeout(300)

PROJECT = "outlast-tests"
TICKETS = 10
MAKE_SECONDS = 240.0
DONE_SECONDS = 60.0


@dataclass(frozen=True)
class Stack:
    """What `make up` has started: two APIs and the help desk, through their published ports."""

    apis: list[httpx.Client]
    desk_port: int


def has_compose() -> bool:
    asked = subprocess.run(["docker", "compose", "version"], capture_output=True)
    return asked.returncode == 0 or shutil.which("docker-compose") is not None


def make(*words: str) -> None:
    """Raises `AssertionError` with what it said."""
    done = subprocess.run(
        ["make", "--no-print-directory", *words], cwd=ROOT, capture_output=True, text=True, timeout=MAKE_SECONDS
    )
    assert done.returncode == 0, f"{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}"
    print(done.stdout.splitlines()[-1])


def left() -> list[str]:
    """Containers, networks and volumes of the stack."""
    ours = ("--quiet", "--filter", f"label=com.docker.compose.project={PROJECT}")
    return " ".join(
        [docker("ps", "--all", *ours), docker("network", "ls", *ours), docker("volume", "ls", *ours)]
    ).split()


@pytest.fixture
def stack(ground: Ground) -> Iterator[Stack]:
    if not has_compose():
        pytest.skip("there is neither docker compose nor docker-compose")
    ports = {name: free_port() for name in ("API_PORT_1", "API_PORT_2", "DESK_PORT")}
    words = [f"PROJECT={PROJECT}", f"IMAGE={OURS}", *(f"{name}={port}" for name, port in ports.items())]
    words += [f"{name}={os.environ[f'CONTAINERS_{name}']}" for name in ("POSTGRES_IMAGE", "REDIS_IMAGE")]
    try:
        make("up", *words)
        lines = (ROOT / "compose/.env").read_text().splitlines()
        token = dict(line.split("=", 1) for line in lines)["OUTLAST_API_TOKEN"]
        headers = {"Authorization": f"Bearer {token}"}
        urls = [f"http://127.0.0.1:{ports[name]}" for name in ("API_PORT_1", "API_PORT_2")]
        yield Stack([httpx.Client(base_url=url, headers=headers, timeout=10) for url in urls], ports["DESK_PORT"])
    finally:
        make("down", *words)
        assert left() == []


def test_the_tickets_of_the_example_are_done_by_what_make_up_starts(stack: Stack) -> None:
    lines = (ROOT / "examples/tickets.jsonl").read_text().splitlines()[:TICKETS]
    first, second = stack.apis
    jobs: list[str] = []
    for line in lines:
        answer = first.post("/v1/jobs", json={"kind": "ticket.triage", "input": json.loads(line)})
        assert answer.status_code == 202, answer.text
        jobs.append(answer.json()["id"])

    def states() -> set[str]:
        return {second.get(f"/v1/jobs/{job}").json()["state"] for job in jobs}

    until(lambda: states() == {"done"}, DONE_SECONDS, what="every ticket done")
    counts = httpx.get(f"http://127.0.0.1:{stack.desk_port}/counts", timeout=10).json()
    assert (counts["filings"], counts["duplicates"]) == (TICKETS, 0)
    assert httpx.get(f"{first.base_url}/v1/kinds", timeout=10).status_code == 401
