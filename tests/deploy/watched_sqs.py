"""A way to an SQS that writes down whose ids went through it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

REPLY_SECONDS = 30.0


@dataclass
class Watched:
    """`sent` and `received` are ids of jobs; `operations` counts calls by name."""

    url: str = ""
    sent: set[str] = field(default_factory=set[str])
    received: set[str] = field(default_factory=set[str])
    operations: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def see(self, operation: str, asked: bytes, told: bytes) -> None:
        """Takes a call in; called by the threads that answer."""
        with self.lock:
            self.operations[operation] += 1
            if operation == "SendMessageBatch":
                self.sent |= {_job(entry["MessageBody"]) for entry in _read(asked).get("Entries", [])}
            elif operation == "ReceiveMessage":
                self.received |= {_job(message["Body"]) for message in _read(told).get("Messages", [])}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: a process that was stopped did not wait for its answer."""
        del request, client_address


@contextmanager
def watched_sqs(url: str) -> Iterator[Watched]:
    """Whoever speaks to the `url` of what this gives speaks to the SQS at `url`."""
    watched = Watched()
    address = urlsplit(url).netloc

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = HTTPConnection(address, timeout=REPLY_SECONDS)
            try:
                connection.request("POST", self.path, asked, dict(self.headers.items()))
                answer = connection.getresponse()
                told = answer.read()
            finally:
                connection.close()
            watched.see(self.headers.get("X-Amz-Target", "").rpartition(".")[2], asked, told)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers.get("Content-Type", "application/x-amz-json-1.0"))
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Writes no line a request."""
            del code, size

    server = _Server(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever, name="watched sqs", daemon=True)
    thread.start()
    watched.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield watched
    finally:
        server.shutdown()
        server.server_close()
        thread.join(REPLY_SECONDS)


def _read(body: bytes) -> dict[str, Any]:
    return json.loads(body)


def _job(body: str) -> str:
    return json.loads(body)["job"]
