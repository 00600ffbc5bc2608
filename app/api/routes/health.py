"""Liveness and readiness."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Response

from app.api.access import UseDatabase, UseSettings
from app.api.answers import as_json
from app.domain.views import dump
from app.usecases.health import Status, readiness

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> Response:
    """This process answers."""
    return as_json(dump({"status": "ok"}))


@router.get("/readyz")
async def readyz(db: UseDatabase, settings: UseSettings) -> Response:
    """`{status, dependencies, loops}`: 200 when `ok` or `degraded`, 503 when `down`."""
    found = await readiness(db, settings)
    answer = as_json(dump(asdict(found)))
    answer.headers["Cache-Control"] = "no-store"
    answer.status_code = 503 if found.status is Status.DOWN else 200
    return answer
