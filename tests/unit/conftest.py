"""Fixtures of tests without a server."""

from __future__ import annotations

import pytest

from tests.unit.bench import Bench
from tests.unit.effect_desk import Desk


@pytest.fixture
def desk() -> Desk:
    """A job whose effects are watched."""
    return Desk()


@pytest.fixture
def bench() -> Bench:
    """Where handlers are run."""
    return Bench()
