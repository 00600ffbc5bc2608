"""Routes whose endpoint takes the request and gives the response, with nothing to inject and nothing to serialize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import request_response
from starlette.types import Receive, Scope, Send


class DirectRoute(APIRoute):
    """Documented as any route, and called without what FastAPI does around an endpoint: a fifth of a submit's time."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self._direct = request_response(endpoint)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in self.methods:
            await self._direct(scope, receive, send)
        else:
            await super().handle(scope, receive, send)
