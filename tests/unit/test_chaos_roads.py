"""The proxy of chaos runs: it knows a commit from what is no commit, and swallows exactly the reply it waits for."""

from __future__ import annotations

import asyncio
import struct
from typing import Self

import pytest

from tests.chaos.proxy import Proxy, Way
from tests.chaos.taps import PlainTap, PostgresTap

WRITE, READ = "DELETE FROM leases", "SELECT 1"
ANSWER_SECONDS = 10
SILENCE_SECONDS = 0.2


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def asked(statement: str) -> bytes:
    """What a driver sends for a prepared statement: negotiation and start-up, then Parse, Bind and Sync."""
    start = struct.pack("!i", 196608) + b"user\0me\0application_name\0outlast worker\0\0"
    return (
        struct.pack("!ii", 8, 80877103)
        + struct.pack("!i", len(start) + 4)
        + start
        + message(b"P", b"s1\0" + statement.encode() + b"\0\0\0")
        + message(b"B", b"\0s1\0\0\0\0\0\0\0")
        + message(b"S", b"")
    )


def answered(status: bytes) -> bytes:
    """The byte that refuses encryption, then CommandComplete and ReadyForQuery."""
    return b"N" + message(b"C", b"DELETE 1\0") + message(b"Z", status)


@pytest.mark.parametrize("chunk", [1, 7, 10_000], ids=["byte by byte", "in pieces", "at once"])
def test_a_statement_that_wrote_and_is_committed_is_told_with_who_asked(chunk: int) -> None:
    tap, request = PostgresTap(), asked(WRITE)
    for at in range(0, len(request), chunk):
        tap.request(request[at : at + chunk])
    assert tap.reply(answered(b"I")) == f"outlast worker: {WRITE}"


@pytest.mark.parametrize(
    ("statement", "status"), [(READ, b"I"), (WRITE, b"T"), (WRITE, b"E")], ids=["read", "open", "failed"]
)
def test_what_is_not_committed_is_no_commit(statement: str, status: bytes) -> None:
    tap = PostgresTap()
    tap.request(asked(statement))
    assert tap.reply(answered(status)) is None


class Upstream:
    """A server that says everything back in capitals, and a road to it. `heard` is what reached the server."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._echo, "127.0.0.1", 0)
        self.road = Proxy(self._server.sockets[0].getsockname()[1], PlainTap)
        self._port = await self.road.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.road.close()
        self._server.close()

    async def connect(self) -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", self._port))

    async def ask(self, words: bytes) -> bytes:
        """The answer on a connection of its own; nothing when it is cut."""
        client = await self.connect()
        client.say(words)
        try:
            return await client.hear()
        finally:
            client.close()

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            self.heard.append(data)
            writer.write(data.upper())
        writer.close()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def say(self, words: bytes) -> None:
        self._writer.write(words)

    async def hear(self) -> bytes:
        """The next words; nothing when the connection is cut."""
        try:
            return await self._reader.read(100)
        except ConnectionResetError:
            return b""

    async def hears_nothing(self) -> bool:
        """Whether nothing arrives and nothing ends for a while."""
        try:
            await asyncio.wait_for(self._reader.read(100), SILENCE_SECONDS)
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        self._writer.close()


async def test_a_swallowed_reply_was_sent_and_never_arrives_and_the_next_one_does() -> None:
    async with asyncio.timeout(ANSWER_SECONDS), Upstream() as up:
        trap = asyncio.create_task(up.road.swallow(lambda text: text.startswith("doomed")))
        await asyncio.sleep(0)
        assert await up.ask(b"other") == b"OTHER"
        assert await up.ask(b"doomed 1") == b""
        assert await trap == "doomed 1"
        assert await up.ask(b"doomed 2") == b"DOOMED 2"
        assert up.heard == [b"other", b"doomed 1", b"doomed 2"]


async def test_a_black_road_is_silent_and_loses_nothing() -> None:
    async with asyncio.timeout(ANSWER_SECONDS), Upstream() as up:
        client = await up.connect()
        up.road.hold()
        client.say(b"held")
        assert await client.hears_nothing()
        assert up.heard == []
        up.road.heal()
        assert await client.hear() == b"HELD"


async def test_a_road_held_for_replies_carries_out_what_nobody_is_told() -> None:
    async with asyncio.timeout(ANSWER_SECONDS), Upstream() as up:
        client = await up.connect()
        up.road.hold(Way.REPLIES)
        client.say(b"done")
        assert await client.hears_nothing()
        assert up.heard == [b"done"]
        up.road.heal()
        assert await client.hear() == b"DONE"


async def test_a_road_held_for_requests_still_brings_what_was_asked_before() -> None:
    async with asyncio.timeout(ANSWER_SECONDS), Upstream() as up:
        client = await up.connect()
        up.road.hold(Way.REPLIES)
        client.say(b"before")
        while not up.heard:
            await asyncio.sleep(0)
        up.road.heal()
        up.road.hold(Way.REQUESTS)
        client.say(b"after")
        assert await client.hear() == b"BEFORE"
        assert await client.hears_nothing()
        assert up.heard == [b"before"]


async def test_a_refusing_road_cuts_what_is_open_and_what_comes_until_it_is_healed() -> None:
    async with asyncio.timeout(ANSWER_SECONDS), Upstream() as up:
        client = await up.connect()
        client.say(b"first")
        assert await client.hear() == b"FIRST"
        up.road.refuses = True
        assert up.road.cut() == 1
        assert await client.hear() == b""
        assert await up.ask(b"refused") == b""
        up.road.heal()
        assert await up.ask(b"again") == b"AGAIN"
        assert up.heard == [b"first", b"again"]


async def test_a_slow_road_takes_its_time_each_way() -> None:
    async with asyncio.timeout(ANSWER_SECONDS), Upstream() as up:
        up.road.delay_seconds = 0.1
        began = asyncio.get_running_loop().time()
        assert await up.ask(b"slow") == b"SLOW"
        assert asyncio.get_running_loop().time() - began >= 0.2
