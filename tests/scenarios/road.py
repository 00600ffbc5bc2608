"""The road from some processes to a server: a test can close it, and open it again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit

from tests.chaos.proxy import Proxy


class Blind:
    """Reads nothing of what passes."""

    def request(self, data: bytes) -> str | None:  # noqa: ARG002  # it is blind
        return None

    def reply(self, data: bytes) -> str | None:  # noqa: ARG002  # it is blind
        return None


class Road:
    """A proxy before the server of `url`, on a thread of its own."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="road", daemon=True)
        self._proxy = Proxy(self._parts.port or 0, Blind)
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._proxy.start(), self._loop).result(10)
        host = self._parts.netloc.rpartition(":")[0]
        self.url = self._parts._replace(netloc=f"{host}:{port}").geturl()
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
        asyncio.run_coroutine_threadsafe(self._proxy.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def close(self, *, reset: bool = False) -> None:
        """Nothing passes and nothing is refused: a black hole. With `reset` the connections of now are cut as well."""
        self._do(self._proxy.hold)
        if reset:
            self._do(self._proxy.cut)

    def open(self) -> None:
        self._do(self._proxy.heal)

    def _do(self, act: Callable[[], object]) -> None:
        async def do() -> None:
            act()

        asyncio.run_coroutine_threadsafe(do(), self._loop).result(10)
