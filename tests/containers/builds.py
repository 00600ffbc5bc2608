"""The images of a run: servers as they are published or out of Debian's packages, and ours, built by `make image`."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.containers.docker_cli import DockerFailed, docker
from tests.processes import ROOT

POSTGRES, REDIS = "postgres:16-alpine", "redis:7-alpine"
PULL_SECONDS = 60.0
BUILD_SECONDS = 300.0
LOCAL = "outlast-local"
OURS = "outlast:containers"
AGAIN = "outlast:containers-again"
STOCKED = "outlast:containers-stocked"
VARIABLES = {"postgres": "CONTAINERS_POSTGRES_IMAGE", "redis": "CONTAINERS_REDIS_IMAGE"}
PREVIOUS = "previous"
HANDLERS = "tests/containers/handlers.py"
# Where a network's own certificates are told to programs that fetch packages.
CERTIFICATES = ("CA_BUNDLE", "PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


class NoImages(Exception):
    """Images of servers can neither be pulled nor be made here."""


class BuildFailed(Exception):
    """Our own image cannot be built."""


@dataclass(frozen=True)
class Bases:
    """What a run stands on. `build` are flags of our own image's build."""

    postgres: str
    redis: str
    build: tuple[str, ...]


def bases(environment: Mapping[str, str]) -> Bases:
    """Images of PostgreSQL and Redis that the engine has, and what ours is built on. Raises `NoImages`.

    `CONTAINERS_POSTGRES_IMAGE` and `CONTAINERS_REDIS_IMAGE` name others than the usual ones; `CONTAINERS_BUILD_FLAGS`
    goes to `make image`, as `--build-arg PACKAGE_INDEX=...`.
    """
    flags = tuple(environment.get("CONTAINERS_BUILD_FLAGS", "").split())
    postgres, redis = (environment.get(name, "") for name in VARIABLES.values())
    if postgres and redis:
        return Bases(postgres, redis, flags)
    try:
        for image in (REDIS, POSTGRES):
            if not docker("images", "--quiet", image):
                docker("pull", "--quiet", image, seconds=PULL_SECONDS)
    except DockerFailed as error:
        print(f"no registry: {str(error).strip()[-200:]}", flush=True)
        return _made_here(flags)
    return Bases(postgres or POSTGRES, redis or REDIS, flags)


def build(tag: str, base: Bases, *flags: str) -> float:
    """Our image as `make image` builds it; how many seconds it took. Raises `BuildFailed` with what it said last."""
    began = time.monotonic()
    words = ["make", "--no-print-directory", "image", f"IMAGE={tag}", f"BUILD_FLAGS={' '.join([*base.build, *flags])}"]
    bundle = next((os.environ[name] for name in CERTIFICATES if os.environ.get(name)), "")
    _run([*words, f"CA_BUNDLE={bundle}"], BuildFailed)
    return time.monotonic() - began


def stock(previous: Path | None) -> None:
    """Our image with what these tests bring along: their handlers, the help desk, the code of before the last revision.

    It is made from a stream, so that an engine may be on another machine.
    """
    files = [HANDLERS, "tests/__init__.py", "tests/containers/__init__.py"]
    files += [str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.*")]
    recipe = f"FROM {OURS}\nCOPY . /srv/\n".encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(recipe)
        tar.addfile(entry, io.BytesIO(recipe))
        for name in files:
            tar.add(ROOT / name, name, filter=_readable)
        if previous is not None:
            tar.add(previous, PREVIOUS, filter=_readable)
    docker("build", "--quiet", "--tag", STOCKED, "-", stdin=stream.getvalue(), seconds=BUILD_SECONDS)


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """For any user, whatever the checkout's permissions are."""
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry


def _made_here(flags: tuple[str, ...]) -> Bases:
    _run([str(ROOT / "tests/containers/images/debian.sh"), LOCAL], NoImages)
    of_python = f"--build-arg BUILD_IMAGE={LOCAL}/python-build --build-arg BASE_IMAGE={LOCAL}/python"
    return Bases(f"{LOCAL}/postgres", f"{LOCAL}/redis", (*of_python.split(), *flags))


def _run(words: list[str], failure: type[Exception]) -> None:
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise failure(f"{words[0]}: {error}") from None
    if done.returncode != 0:
        raise failure(f"{' '.join(words)}: {done.stdout[-1_000:]}\n{done.stderr[-2_000:]}")
