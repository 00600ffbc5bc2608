"""What conversations are about, read off the wire: HTTP, Redis and PostgreSQL."""

from __future__ import annotations

import re
import struct

HEAD_CHARS = 200

# PostgreSQL, frontend/backend protocol 3.0: "Message Formats".
NEGOTIATIONS = {80877103, 80877104}  # SSLRequest, GSSENCRequest: answered with one byte that is no message
HEADER_BYTES = 5

_WRITES = re.compile(r"\b(?:INSERT|UPDATE|DELETE|COMMIT)\b")
_APPLICATION = re.compile(rb"application_name\0([^\0]*)\0")


class PlainTap:
    """Requests and replies as text: what was asked for last is what a reply is about."""

    def __init__(self) -> None:
        self._asked = ""

    def request(self, data: bytes) -> str | None:
        self._asked = data[:HEAD_CHARS].decode("latin-1")
        return self._asked

    def reply(self, data: bytes) -> str | None:
        return self._asked if data else None


class PostgresTap:
    """Tells `<application>: <statement>` of every statement that wrote and is committed."""

    def __init__(self) -> None:
        self._application = ""
        self._statements: dict[bytes, str] = {}
        self._asked = ""
        self._started = False
        self._bare_replies = 0
        self._from_client = b""
        self._from_server = b""

    def request(self, data: bytes) -> str | None:
        self._from_client += data
        while not self._started and len(self._from_client) >= 8:
            length, code = struct.unpack("!ii", self._from_client[:8])
            if len(self._from_client) < length:
                return None
            self._start(code, self._from_client[:length])
            self._from_client = self._from_client[length:]
        if self._started:
            messages, self._from_client = _framed(self._from_client)
            for kind, body in messages:
                self._hear(kind, body)
        return None

    def reply(self, data: bytes) -> str | None:
        self._from_server += data[self._bare_replies :]
        self._bare_replies = max(0, self._bare_replies - len(data))
        messages, self._from_server = _framed(self._from_server)
        completed = False
        for kind, body in messages:
            completed = completed or kind == b"C"
            if kind == b"Z" and completed and body == b"I" and _WRITES.search(self._asked):
                return f"{self._application}: {self._asked}"
        return None

    def _start(self, code: int, message: bytes) -> None:
        if code in NEGOTIATIONS:
            self._bare_replies += 1
            return
        self._started = True
        found = _APPLICATION.search(message)
        self._application = found[1].decode() if found else ""

    def _hear(self, kind: bytes, body: bytes) -> None:
        match kind:
            case b"P":
                name, _, rest = body.partition(b"\0")
                self._statements[name] = rest.partition(b"\0")[0].decode()
            case b"B":
                name = body.partition(b"\0")[2].partition(b"\0")[0]
                self._asked = self._statements.get(name, "")
            case b"Q":
                self._asked = body.rstrip(b"\0").decode()
            case _:
                pass


def _framed(data: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The whole messages at the beginning of `data` as kind and body, and what is left."""
    messages: list[tuple[bytes, bytes]] = []
    while len(data) >= HEADER_BYTES:
        end = 1 + struct.unpack("!i", data[1:HEADER_BYTES])[0]
        if len(data) < end:
            break
        messages.append((data[:1], data[HEADER_BYTES:end]))
        data = data[end:]
    return messages, data
