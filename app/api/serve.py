"""Runs the HTTP edge in this process until it is told to stop."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from socket import socket

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app import failpoints
from app.api import problems
from app.api.application import create
from app.api.auth import refuse_unsafe_binding
from app.domain.errors import Refused
from app.settings import Settings

GRACE_SECONDS = 5
# Longer than callers and load balancers keep an idle connection, a minute at most as a rule: who closes it must be the
# one who sends, or now and then a request is on its way when it goes.
KEEP_ALIVE_SECONDS = 75
STOPPED, FAILED, NOT_ALLOWED = 0, 1, 3


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 as uvicorn reads it; what cannot be read is answered with a problem document as well."""

    def send_400_response(self, msg: str) -> None:
        del msg  # uvicorn's own words, always the same
        self.transport.write(problems.unreadable())
        self.transport.close()


class Server(uvicorn.Server):
    """A server that ends clean on SIGINT and SIGTERM: uvicorn's own raises them again after it has stopped."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Callers that wait for the end of a job are answered with the job as it is, not cut off."""
        await self._app.state.waiting.close()
        await super().shutdown(sockets)


def serve(settings: Settings, host: str, port: int) -> int:
    """Serves on `host:port` (0: a free port) and returns the exit code; blocking, in the main thread.

    Requests under way get 5 seconds to end. 3: the address would be open to anybody. 1: it cannot be bound.
    """
    try:
        refuse_unsafe_binding(settings, host)
    except Refused as refused:
        sys.stderr.write(f"outlast api: {refused.detail}\n")
        return NOT_ALLOWED
    failpoints.arm(settings)
    app = create(settings)
    server = Server(
        app,
        uvicorn.Config(
            app,
            host=host,
            port=port,
            loop="uvloop",
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        ),
    )
    try:
        server.run()
    except SystemExit:
        return FAILED
    return STOPPED if server.started else FAILED
