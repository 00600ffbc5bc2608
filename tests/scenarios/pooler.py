"""A connection pooler between clients and PostgreSQL, as small as it can be: it speaks enough of protocol 3.0 for that.

Each client logs in with the server itself, which gives the pool one more session. In transaction mode a client then has
a session only until its transaction ends, and whoever comes next gets the one that was used last; in session mode it
keeps its own. As poolers do, it tells clients a process id of its own making.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

HEAD_BYTES = 5
GREETING_LENGTH_BYTES = 4
MADE_UP_ID = b"\x7f\xff\xff\xf0" + b"cafe"
CANCEL = 80_877_102
ENCRYPT = 80_877_103


@dataclass(frozen=True, slots=True)
class Link:
    """One end's bytes in and out."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def message(self) -> tuple[bytes, bytes]:
        """The type of the next message, and all of it."""
        head = await self.reader.readexactly(HEAD_BYTES)
        return head[:1], head + await self.reader.readexactly(int.from_bytes(head[1:]) - 4)

    async def send(self, message: bytes) -> None:
        self.writer.write(message)
        await self.writer.drain()


class Pooler:
    """Clients come to `port`; the server is on `target`."""

    def __init__(self, target: int, *, sessions: bool) -> None:
        self.port = 0
        self._target = target
        self._sessions = sessions
        self._idle: list[Link] = []
        self._all: list[Link] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Link(reader, writer)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                server = await self._log_in(client)
                if self._sessions:
                    await asyncio.gather(_pass_on(client, server), _pass_on(server, client))
                self._idle.append(server)
                await self._transactions(client)
        finally:
            writer.close()

    def close(self) -> None:
        for link in self._all:
            link.writer.close()

    async def _log_in(self, client: Link) -> Link:
        server = Link(*await asyncio.open_connection("127.0.0.1", self._target))
        self._all.append(server)
        greeting = await self._greeting(client)
        await server.send(greeting)
        while True:
            kind, message = await server.message()
            await client.send(message[:HEAD_BYTES] + MADE_UP_ID if kind == b"K" else message)
            if kind == b"Z":
                return server
            if kind == b"R" and int.from_bytes(message[5:9]) in {10, 11}:
                await server.send((await client.message())[1])

    async def _greeting(self, client: Link) -> bytes:
        while True:
            length = await client.reader.readexactly(GREETING_LENGTH_BYTES)
            body = await client.reader.readexactly(int.from_bytes(length) - GREETING_LENGTH_BYTES)
            code = int.from_bytes(body[:4])
            if code == CANCEL:
                raise ConnectionError("nothing is cancelled here")
            if code != ENCRYPT:
                return length + body
            await client.send(b"N")

    async def _transactions(self, client: Link) -> None:
        """Lends the client the session that was used last, from a first message to the end of the transaction."""
        coming = asyncio.create_task(client.message())
        try:
            while (await coming)[0] != b"X":
                server = self._idle.pop()
                answering = asyncio.create_task(_until_idle(server, client))
                while not answering.done():
                    if coming.done():
                        await server.send(coming.result()[1])
                        coming = asyncio.create_task(client.message())
                    await asyncio.wait((coming, answering), return_when=asyncio.FIRST_COMPLETED)
                await answering
                self._idle.append(server)
        finally:
            coming.cancel()


async def _until_idle(server: Link, client: Link) -> None:
    """Passes answers on until one says that no transaction is open."""
    while True:
        kind, message = await server.message()
        await client.send(message)
        if kind == b"Z" and message[-1:] == b"I":
            return


async def _pass_on(source: Link, target: Link) -> None:
    while data := await source.reader.read(65_536):
        await target.send(data)
    target.writer.close()


@asynccontextmanager
async def pooling(target: int, *, sessions: bool = False) -> AsyncIterator[int]:
    """The port of a pooler in transaction mode, or in session mode."""
    pooler = Pooler(target, sessions=sessions)
    listener = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    try:
        yield int(listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        pooler.close()
