"""The proxy of chaos runs: it knows a commit from what is no commit, and swallows exactly the reply it waits for."""

from __future__ import annotations

import asyncio
import struct

import pytest

from tests.chaos.proxy import Proxy
from tests.chaos.taps import PlainTap, PostgresTap

WRITE, READ = "DELETE FROM leases", "SELECT 1"
ANSWER_SECONDS = 5


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


async def test_a_swallowed_reply_was_sent_and_never_arrives_and_the_next_one_does() -> None:
    heard: list[bytes] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            heard.append(data)
            writer.write(data.upper())
        writer.close()

    async def ask(port: int, words: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(words)
        try:
            return await reader.read(100)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    async with asyncio.timeout(ANSWER_SECONDS), await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        proxy = Proxy(server.sockets[0].getsockname()[1], PlainTap)
        port = await proxy.start()
        trap = asyncio.create_task(proxy.swallow(lambda text: text.startswith("doomed")))
        await asyncio.sleep(0)
        assert await ask(port, b"other") == b"OTHER"
        assert await ask(port, b"doomed 1") == b""
        assert await trap == "doomed 1"
        assert await ask(port, b"doomed 2") == b"DOOMED 2"
        assert heard == [b"other", b"doomed 1", b"doomed 2"]
        await proxy.close()
