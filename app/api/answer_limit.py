"""No caller waits for ever: who has sent a whole request is answered in time, whatever the database does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import problems
from app.api.waiting import wait_seconds
from app.domain.errors import DatabaseAway
from app.telemetry import log

ANSWER_SECONDS = 8.0


class AnswerLimit:
    """Answers 503 `database-away` when nobody else has begun to, 8 s after the request was there.

    A statement has a limit of its own, but a request may need several and a connection first, and wait behind others.
    `Prefer: wait=N` adds its N seconds. What was under way is cancelled; only a key tells whether it still came about.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        exchange = Exchange(scope, receive, send, ANSWER_SECONDS + wait_seconds(headers.getlist("Prefer")))
        if headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers:
            exchange.begin()
        await exchange.carry_out(self._app)


class Exchange:
    """One request and its answer. The caller is answered from a task of its own, as what is cancelled may take long."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, seconds: float) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: asyncio.Task[None] | None = None
        self._started = False

    def begin(self) -> None:
        """The request is there: from now on the time counts."""
        task = asyncio.current_task()
        assert task is not None
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._give_up, task.cancel)

    async def carry_out(self, app: ASGIApp) -> None:
        try:
            await app(self._scope, self._hear, self._say)
        except asyncio.CancelledError:
            if self._refusal is None:
                raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._refusal is not None:
                await self._refusal

    async def _hear(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False) and self._timer is None:
            self.begin()
        return message

    async def _say(self, message: Message) -> None:
        if self._refusal is None:
            self._started = True
            await self._send(message)

    def _give_up(self, cancel: Callable[[], object]) -> None:
        if not self._started:
            self._refusal = asyncio.get_running_loop().create_task(self._refuse())
            cancel()

    async def _refuse(self) -> None:
        away = DatabaseAway(f"no answer within {self._seconds} s")
        log.warning("dependency_away", error=str(away), path=self._scope["path"])
        await problems.response(problems.refusal(away), self._scope)(self._scope, self._receive, self._send)
