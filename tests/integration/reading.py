"""The HTTP application of a test, called in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from httpx import ASGITransport, AsyncClient

from app.api.application import create
from app.settings import Settings

BASE = "http://127.0.0.1"


@asynccontextmanager
async def client_of(settings: Settings) -> AsyncIterator[AsyncClient]:
    app = create(settings)
    async with app.router.lifespan_context(app), AsyncClient(transport=ASGITransport(app), base_url=BASE) as client:
        yield client


async def get(client: AsyncClient, path: str, status: int = 200, **params: Any) -> Any:
    """The JSON of an answer, once its status is the expected one."""
    answer = await client.get(path, params={name: str(value) for name, value in params.items()})
    assert answer.status_code == status, answer.text
    return answer.json()


async def all_ids(client: AsyncClient, path: str, **params: Any) -> list[str]:
    """The ids of a whole list, page by page."""
    ids: list[str] = []
    page = await get(client, path, **params)
    ids += [item["id"] for item in page["data"]]
    while page["next_cursor"] is not None:
        page = await get(client, path, **params, cursor=page["next_cursor"])
        ids += [item["id"] for item in page["data"]]
    return ids
