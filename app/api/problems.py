"""Every error leaves as `application/problem+json` (RFC 9457), and nothing but this module writes one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from secrets import token_hex
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.domain.errors import DatabaseAway, DependencyAway, JsonRefused, OutlastError, Refused
from app.domain.jsontext import token
from app.telemetry import frames, log

MEDIA_TYPE = "application/problem+json"
REQUEST_ID_HEADER = b"x-request-id"
RETRY_SECONDS = 1

_usable_request_id = re.compile(rb"[A-Za-z0-9._-]{1,64}").fullmatch


def document(refused: Refused, request_id: str | None = None) -> dict[str, Any]:
    """The problem document of a refusal: `{type, title, status, detail, code, ...}`."""
    body: dict[str, Any] = {
        "type": f"/problems/{refused.code}",
        "title": refused.code.replace("-", " ").capitalize(),
        "status": refused.status,
        "detail": refused.detail,
        "code": refused.code,
        **refused.extra,
    }
    if refused.errors:
        body["errors"] = refused.errors
    if request_id is not None:
        body["request_id"] = request_id
    return body


def response(refused: Refused, scope: Scope, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that says what was refused. Its text is ASCII, so it can quote anything."""
    answer = Response(
        json.dumps(document(refused, request_id(scope))),
        status_code=refused.status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )
    if refused.retry_after is not None:
        answer.headers["Retry-After"] = str(refused.retry_after)
    return answer


def unreadable() -> bytes:
    """The whole answer, to be followed by the end of the connection, to bytes that are not HTTP."""
    name = token_hex(16)
    body = json.dumps(document(Refused("bad-request", 400, "This is not an HTTP request."), name)).encode()
    head = (
        f"HTTP/1.1 400 Bad Request\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\nX-Request-Id: {name}"
    )
    return head.encode() + b"\r\nConnection: close\r\n\r\n" + body


def request_id(scope: Scope) -> str:
    return scope["state"]["request_id"]


def install(app: FastAPI, routes: Sequence[APIRoute]) -> None:
    """Makes every exception that one of the routes lets out a problem document."""

    @app.exception_handler(OutlastError)
    async def refused(request: Request, error: OutlastError) -> Response:
        if isinstance(error, DependencyAway):
            log.warning("dependency_away", error=str(error), path=request.url.path)
        return response(refusal(error), request.scope)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        headers = (
            {"Allow": _allowed(routes, request.url.path)}
            if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED
            else error.headers
        )
        return response(_from_http(error), request.scope, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return response(_from_validation(error.errors()), request.scope)


def refusal(error: OutlastError) -> Refused:
    """What an error is to the caller: of a dependency its role, never its address. Raises what is our own fault."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, JsonRefused):
        return Refused("invalid-json", 422, str(error), errors=[{"pointer": error.pointer, "detail": error.why}])
    if isinstance(error, DependencyAway):
        who = "database" if isinstance(error, DatabaseAway) else "broker"
        return Refused(f"{who}-away", 503, f"The {who} does not answer; try again.", retry_after=RETRY_SECONDS)
    raise error


def _from_http(error: HTTPException) -> Refused:
    phrase = HTTPStatus(error.status_code).phrase
    return Refused(phrase.lower().replace(" ", "-"), error.status_code, error.detail)


def _allowed(routes: Sequence[APIRoute], path: str) -> str:
    """The methods of every route with this path: each route alone knows only its own."""
    methods = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
    return ", ".join(sorted(methods))


def _from_validation(found: Sequence[Any]) -> Refused:
    """Says which parameter is wrong and why, without repeating its value."""
    errors = [
        {"pointer": token(name), "parameter": name, "detail": str(item["msg"])}
        for item in found
        for name in (str(item["loc"][-1]),)
    ]
    return Refused("invalid-request", 422, "A parameter of the request is not valid.", errors=errors)


class LastResort:
    """Outermost: names every request, and answers what nobody else answered.

    A request id comes from `X-Request-Id` when it is 1-64 characters of `[A-Za-z0-9._-]`, else it is
    made; it goes back in the same header and into every problem document.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = _request_id_of(scope)
        scope.setdefault("state", {})["request_id"] = name
        started = False

        async def send_named(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID_HEADER, name.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except ClientDisconnect:
            log.debug("client_left", path=scope["path"], request_id=name)
        except Exception as error:
            log.error(
                "request_failed",
                path=scope["path"],
                request_id=name,
                error_type=type(error).__name__,
                where=frames(error),
            )
            if not started:
                refused = Refused("internal-error", 500, "Something failed here; the request id finds it in the log.")
                await response(refused, scope)(scope, receive, send_named)


def _request_id_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == REQUEST_ID_HEADER and _usable_request_id(value):
            return value.decode("ascii")
    return token_hex(16)
