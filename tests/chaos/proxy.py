"""A TCP proxy of our own: it cuts, refuses, slows down or black-holes what passes, both ways or one, swallows a reply.

A swallowed reply is one that the server has sent and the client never gets; then both ends are cut. What a
conversation is about is read by a `Tap`, one for each protocol.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

CHUNK_BYTES = 65_536

Match = Callable[[str], bool]


class Way(StrEnum):
    """To the server, or back from it."""

    REQUESTS = "requests"
    REPLIES = "replies"


class Tap(Protocol):
    """Reads along on one connection."""

    def request(self, data: bytes) -> str | None:
        """Sees what the client sends; what is being asked for, when that is known now."""
        ...

    def reply(self, data: bytes) -> str | None:
        """Sees what the server sends; what it has carried out, when this is the answer that says so."""
        ...


@dataclass(eq=False)
class Trap:
    """Waits for one conversation: for its request to have been passed on, or for its reply."""

    match: Match
    on_reply: bool
    sprung: asyncio.Future[str]


class Proxy:
    """Listens on a free port of 127.0.0.1 and passes on to another. All on one event loop."""

    def __init__(self, target: int, tap: Callable[[], Tap]) -> None:
        self.delay_seconds = 0.0
        self.target = target
        self.refuses = False
        self._tap = tap
        self._traps: deque[Trap] = deque()
        self._passing = {way: asyncio.Event() for way in Way}
        self._let_pass()
        self._links: set[Link] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """The port it listens on."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Returns once every connection has ended."""
        assert self._server is not None
        self._server.close()
        self.heal()
        while self.cut():
            await asyncio.sleep(0)

    def cut(self) -> int:
        """Cuts every connection, with a reset; how many."""
        links = list(self._links)
        for link in links:
            link.abort()
        return len(links)

    def hold(self, *ways: Way) -> None:
        """From now on nothing passes these ways, and nothing is refused or lost: it arrives when they are good again.

        Held both ways, which is what no argument means, the road is a black hole.
        """
        for way in ways or Way:
            self._passing[way].clear()

    def heal(self) -> None:
        """The road is as good as new. What was held arrives."""
        self.refuses = False
        self.delay_seconds = 0.0
        self._let_pass()

    def _let_pass(self) -> None:
        for passing in self._passing.values():
            passing.set()

    async def swallow(self, match: Match) -> str:
        """Cuts the next matching conversation between the server's answer and the client; what it was about."""
        return await self._spring(match, on_reply=True)

    async def cut_after_request(self, match: Match) -> str:
        """Cuts the next matching conversation once the server has the request; what it was about."""
        return await self._spring(match, on_reply=False)

    async def passage(self, way: Way) -> None:
        """Waits as long as the road is bad that way."""
        await self._passing[way].wait()
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)

    def springs(self, about: str | None, *, on_reply: bool) -> bool:
        """Whether a trap waited for this; it is sprung then."""
        if about is None:
            return False
        for trap in self._traps:
            if trap.on_reply is on_reply and trap.match(about):
                self._traps.remove(trap)
                if not trap.sprung.done():
                    trap.sprung.set_result(about)
                return True
        return False

    async def _spring(self, match: Match, *, on_reply: bool) -> str:
        trap = Trap(match, on_reply, asyncio.get_running_loop().create_future())
        self._traps.append(trap)
        try:
            return await trap.sprung
        finally:
            with suppress(ValueError):
                self._traps.remove(trap)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = None if self.refuses else await _connect(self.target)
        if upstream is None:
            writer.transport.abort()
            return
        link = Link(self, self._tap(), (reader, writer), upstream)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)
            link.abort()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _connect(port: int) -> Stream | None:
    try:
        return await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return None


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, tap: Tap, client: Stream, server: Stream) -> None:
        self._proxy = proxy
        self._tap = tap
        self._client = client
        self._server = server

    async def run(self) -> None:
        """Passes on until either side ends."""
        ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._replies())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def abort(self) -> None:
        for _, writer in (self._client, self._server):
            writer.transport.abort()

    async def _requests(self) -> None:
        with suppress(OSError):
            while data := await self._client[0].read(CHUNK_BYTES):
                await self._proxy.passage(Way.REQUESTS)
                about = self._tap.request(data)
                self._server[1].write(data)
                await self._server[1].drain()
                if self._proxy.springs(about, on_reply=False):
                    self._client[1].transport.abort()
                    await self._server[0].read(CHUNK_BYTES)
                    return

    async def _replies(self) -> None:
        with suppress(OSError):
            while data := await self._server[0].read(CHUNK_BYTES):
                await self._proxy.passage(Way.REPLIES)
                if self._proxy.springs(self._tap.reply(data), on_reply=True):
                    return
                self._client[1].write(data)
                await self._client[1].drain()
