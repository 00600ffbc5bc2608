"""The HTTP edge, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware

from app.api import problems
from app.api.answer_limit import AnswerLimit
from app.api.auth import Gate
from app.api.body import BodyLimit
from app.api.routes import dead_letters, health, jobs, metrics, operate, submit
from app.api.waiting import Waiting
from app.garbage import look_seldom
from app.settings import Settings
from app.store.database import Database
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitter

ROUTERS: tuple[APIRouter, ...] = (
    submit.router,
    jobs.router,
    operate.router,
    dead_letters.router,
    health.router,
    metrics.router,
)


def create(settings: Settings) -> FastAPI:
    """The application. It opens its pool at start-up and starts whether or not PostgreSQL answers."""
    token = settings.api_token.get_secret_value() if settings.api_token is not None else None
    app = FastAPI(
        title="Outlast",
        description="Jobs that outlast their workers.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        middleware=[
            Middleware(problems.LastResort),
            Middleware(Gate, token=token),
            Middleware(BodyLimit, bytes_max=settings.max_body_bytes),
            Middleware(AnswerLimit),
        ],
    )
    app.state.settings = settings
    problems.install(app, [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)])
    for router in ROUTERS:
        app.include_router(router)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Opens what requests share, and closes it once the last of them is answered."""
    settings: Settings = app.state.settings
    database = await Database.open(settings, "api")
    app.state.database = database
    app.state.waiting = Waiting(database)
    app.state.catalog = Catalog(database)
    app.state.submitter = Submitter(database, app.state.catalog, settings)
    look_seldom()
    try:
        yield
        await app.state.submitter.drain()
    finally:
        await app.state.waiting.close()
        await database.close()
