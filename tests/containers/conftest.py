"""One ground and one crew for all scenarios; each finds all of it running, and leaves it in whatever state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.site import Crew, Ground

IMAGES = ("CONTAINERS_POSTGRES_IMAGE", "CONTAINERS_REDIS_IMAGE")


@pytest.fixture(scope="session")
def ground() -> Iterator[Ground]:
    if any(name not in os.environ for name in IMAGES):
        pytest.skip("make containers runs these: they need an engine and images")
    with Ground(*(os.environ[name] for name in IMAGES)) as one:
        yield one


@pytest.fixture(scope="session")
def logs() -> Path:
    """Where containers' logs go."""
    return Path(os.environ["CONTAINERS_LOGS"])


@pytest.fixture(scope="session")
def standing_crew(ground: Ground, logs: Path) -> Iterator[Crew]:
    with Crew(ground, logs) as crew:
        yield crew


@pytest.fixture
def crew(standing_crew: Crew) -> Crew:
    standing_crew.mend()
    return standing_crew
