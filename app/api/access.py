"""What routes are handed: the services of this process, and ids out of paths."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from app.api.waiting import Waiting
from app.domain.errors import Refused
from app.settings import Settings
from app.store.database import Database
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitter


async def _database(request: Request) -> Database:
    return request.app.state.database


async def _settings(request: Request) -> Settings:
    return request.app.state.settings


async def _waiting(request: Request) -> Waiting:
    return request.app.state.waiting


def catalog_of(request: Request) -> Catalog:
    """For routes that are handed the request alone."""
    return request.app.state.catalog


def submitter_of(request: Request) -> Submitter:
    """For routes that are handed the request alone."""
    return request.app.state.submitter


async def _job_id(job_id: str) -> UUID:
    """A text that cannot be an id names no job."""
    try:
        return UUID(job_id)
    except ValueError:
        raise Refused("job-not-found", 404, "There is no such job.") from None


UseDatabase = Annotated[Database, Depends(_database)]
UseSettings = Annotated[Settings, Depends(_settings)]
UseWaiting = Annotated[Waiting, Depends(_waiting)]
JobId = Annotated[UUID, Depends(_job_id)]
