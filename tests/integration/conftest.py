"""Fixtures of tests against one database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from app.settings import Settings
from app.store.database import Database
from tests.integration.scene import Scene, leading
from tests.integration.shell import Shell
from tests.integration.world import World, opened


@pytest.fixture
async def world(db: Database, settings: Settings) -> AsyncIterator[World]:
    """A worker that holds its lock, on this test's database."""
    async with opened(db, settings) as world:
        yield world


@pytest.fixture
def outlast(settings: Settings) -> Shell:
    """The command line, on this test's servers."""
    return Shell(settings)


@pytest.fixture
async def scene(settings: Settings, db: Database) -> AsyncIterator[Scene]:
    async with leading(settings, db) as made:
        yield made
