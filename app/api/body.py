"""Request bodies: refused over the limit before they are read whole, and read as the JSON we keep."""

from __future__ import annotations

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import problems
from app.domain import jsontext
from app.domain.errors import Refused
from app.domain.jsontext import JsonValue


class BodyLimit:
    """Answers 413 from the declared length alone, and stops an undeclared body at the limit."""

    def __init__(self, app: ASGIApp, *, bytes_max: int) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refused = self._refused(headers)
        if refused is not None:
            await problems.response(refused, scope)(scope, receive, send)
            return
        taken = 0

        async def receive_counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._bytes_max:
                raise self._too_large()
            return message

        await self._app(scope, receive_counted, send)

    def _refused(self, headers: dict[bytes, bytes]) -> Refused | None:
        if headers.get(b"content-encoding", b"identity") != b"identity":
            return Refused("unsupported-media-type", 415, "Bodies come without a content encoding.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            return Refused("bad-request", 400, "Content-Length is not a number.")
        return self._too_large() if len(length) > 18 or int(length) > self._bytes_max else None

    def _too_large(self) -> Refused:
        return Refused("body-too-large", 413, f"A body may have {self._bytes_max} bytes.")


async def read_json(request: Request) -> JsonValue:
    """The body as JSON with only its syntax checked; what goes on record is checked by its reader.

    Raises `JsonRefused`, and `Refused` 413 over the limit.
    """
    return jsontext.read(await request.body())
