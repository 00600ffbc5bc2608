"""HTTP for load: one kept connection that can POST and nothing else, so that the caller costs little."""

from __future__ import annotations

import asyncio
import re
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Line:
    """`async with Line(url) as line`; one request at a time."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer. Raises `ConnectionError`, `asyncio.IncompleteReadError`."""
        self._writer.write(
            b"POST %b HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (path.encode(), len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(head)
        answer = await self._reader.readexactly(int(found.group(1))) if found else b""
        return int(head.split(b" ", 2)[1]), answer
