"""`make containers`: the image and the whole of it in containers, from nothing, and nothing is left of it.

An engine, or one of our own; servers' images, or some made here; our image, twice; then the scenarios of this folder.
Where no engine or no image can be had it says so, loudly, and ends with 0. Logs of containers are kept when a
scenario fails.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.containers import builds
from tests.containers.box import LABEL
from tests.containers.builds import AGAIN, OURS, BuildFailed, NoImages
from tests.containers.docker_cli import docker
from tests.containers.engine import NoEngine, engine
from tests.previous import unpack_previous
from tests.processes import ROOT

LIMIT_SECONDS = 540.0
SKIPPED, FAILED = 0, 1
SETTINGS = {
    # Its reaper is an image of its own, which a machine without a registry does not have; what is ours has a label.
    "TESTCONTAINERS_RYUK_DISABLED": "true",
    "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
}


def main() -> int:
    signal.signal(signal.SIGTERM, end)
    began = time.monotonic()
    try:
        with engine() as environment:
            os.environ.update(environment)
            return scenarios(began)
    except (NoEngine, NoImages) as reason:
        rule = "!" * 78
        print(f"{rule}\nSKIPPED: nothing was run in containers. {reason}\n{rule}", file=sys.stderr, flush=True)
        return SKIPPED
    except BuildFailed as failure:
        print(failure, file=sys.stderr)
        return FAILED


def scenarios(began: float) -> int:
    """Images, then pytest; its exit code. Raises `NoImages`, `BuildFailed`."""
    bases = builds.bases(os.environ)
    say(began, f"servers: {bases.postgres}, {bases.redis}")
    for tag in (OURS, AGAIN):
        seconds = builds.build(tag, bases, "--no-cache")
        say(began, f"built {tag} in {seconds:.0f} s: {size(tag) / 1e6:.0f} MB")
    folder = Path(tempfile.mkdtemp(prefix="outlast-containers-"))
    code = FAILED
    try:
        previous = folder / "previous"
        reaches_back = unpack_previous(previous)
        builds.stock(previous if reaches_back else None)
        os.environ.update(SETTINGS)
        os.environ.update(
            CONTAINERS_POSTGRES_IMAGE=bases.postgres,
            CONTAINERS_REDIS_IMAGE=bases.redis,
            CONTAINERS_LOGS=str(folder / "logs"),
            CONTAINERS_PREVIOUS=str(reaches_back),
        )
        with swept():
            code = pytest(began)
    finally:
        if code == 0:
            shutil.rmtree(folder)
        else:
            print(f"logs of the containers: {folder / 'logs'}", flush=True)
    say(began, "over")
    return code


def pytest(began: float) -> int:
    """The scenarios of this folder, within what is left of the time."""
    words = [sys.executable, "-m", "pytest", "-q", "-s", "-o", "addopts=-ra --strict-markers", "--durations=20"]
    left = LIMIT_SECONDS - (time.monotonic() - began)
    try:
        return subprocess.run([*words, *(sys.argv[1:] or ["tests/containers"])], cwd=ROOT, timeout=left).returncode
    except subprocess.TimeoutExpired:
        print(f"stopped: not over within {LIMIT_SECONDS:g} s", file=sys.stderr, flush=True)
        return FAILED


@contextmanager
def swept() -> Iterator[None]:
    """Containers and networks of these tests do not outlive the block."""
    try:
        yield
    finally:
        ours = ("--quiet", "--filter", f"label={LABEL}")
        if containers := docker("ps", "--all", *ours).split():
            docker("rm", "--force", "--volumes", *containers)
        if networks := docker("network", "ls", *ours).split():
            docker("network", "rm", *networks)


def end(number: int, _frame: FrameType | None) -> NoReturn:
    """Ends as Ctrl-C does: what was started is stopped."""
    sys.exit(128 + number)


def size(tag: str) -> int:
    """Of an image, in bytes."""
    return int(docker("image", "inspect", "--format", "{{.Size}}", tag))


def say(began: float, text: str) -> None:
    print(f"{time.monotonic() - began:5.0f} s  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
