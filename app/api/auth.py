"""Who may call: a bearer token where one is set, this machine's own programs where none is."""

from __future__ import annotations

from ipaddress import ip_address
from secrets import compare_digest

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problems
from app.domain.errors import Refused
from app.settings import Settings

OPEN_PATHS = frozenset({"/healthz", "/readyz"})


def is_loopback(host: str) -> bool:
    """Whether the address to bind is reachable from this machine only. Names other than `localhost` are not."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_unsafe_binding(settings: Settings, host: str) -> None:
    """Raises `Refused` for an address others can reach while nobody has to say who they are."""
    if is_loopback(host) or settings.api_token is not None or settings.allow_anonymous:
        return
    raise Refused(
        "unsafe-binding",
        403,
        f"refusing to listen on {host or 'all addresses'} without authentication: set OUTLAST_API_TOKEN, "
        "or OUTLAST_ALLOW_ANONYMOUS=true, or bind 127.0.0.1",
    )


class Gate:
    """Lets a request in before anything of it is read.

    With a token set, every path but the health checks wants `Authorization: Bearer` (RFC 6750), compared
    in constant time. A browser that acts for another site (`Sec-Fetch-Site`, or an `Origin` that is not
    the host) is refused: pages must not be able to make it submit jobs to a port on this machine.
    """

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if _is_cross_site(headers):
            refused = Refused("cross-site-request", 403, "Requests on behalf of another site are not taken.")
            await problems.response(refused, scope)(scope, receive, send)
        elif not self._admits(headers.get(b"authorization", b"")):
            refused = Refused("unauthorized", 401, "A bearer token is needed.")
            await problems.response(refused, scope, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _admits(self, authorization: bytes) -> bool:
        if self._token is None:
            return True
        scheme, _, given = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and compare_digest(given.strip(), self._token)


def _is_cross_site(headers: dict[bytes, bytes]) -> bool:
    """By `Sec-Fetch-Site` where the browser sends it, which a proxy that renames the host cannot confuse."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site not in (b"none", b"same-origin")
    origin = headers.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != headers.get(b"host")
