"""The HTTP edge, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware

from app.api import problems
from app.api.auth import Gate
from app.api.body import BodyLimit
from app.api.routes import dead_letters, health, jobs, metrics
from app.api.waiting import Waiting
from app.settings import Settings
from app.store.database import Database

ROUTERS: tuple[APIRouter, ...] = (jobs.router, dead_letters.router, health.router, metrics.router)


def create(settings: Settings) -> FastAPI:
    """The application. It opens its pool at start-up and starts whether or not PostgreSQL answers."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = await Database.open(settings, "api")
        app.state.database = database
        app.state.waiting = Waiting(database)
        try:
            yield
        finally:
            await app.state.waiting.close()
            await database.close()

    token = settings.api_token.get_secret_value() if settings.api_token is not None else None
    app = FastAPI(
        title="Outlast",
        description="Jobs that outlast their workers.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        middleware=[
            Middleware(problems.LastResort),
            Middleware(Gate, token=token),
            Middleware(BodyLimit, bytes_max=settings.max_body_bytes),
        ],
    )
    app.state.settings = settings
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    return app
