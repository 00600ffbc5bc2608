"""The `docker` command: what an engine is asked beyond what testcontainers has a name for."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

COMMAND_SECONDS = 60.0
LOOK_SECONDS = 0.2


class DockerFailed(AssertionError):
    """A docker command failed."""


def docker(*words: str, seconds: float = COMMAND_SECONDS, stdin: bytes = b"") -> str:
    """What `docker WORDS` prints. Raises `DockerFailed` with what it said, also when it takes longer than that."""
    try:
        done = subprocess.run(["docker", *words], input=stdin, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise DockerFailed(f"docker {' '.join(words)}: no end within {seconds:g} s") from None
    if done.returncode != 0:
        raise DockerFailed(f"docker {' '.join(words)}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def until(condition: Callable[[], T], seconds: float, *, what: str) -> T:
    """Asks until the answer is true, and returns it; seldom, as an answer may cost a process. Raises `TimeoutError`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(LOOK_SECONDS)
    return value
