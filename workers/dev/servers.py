"""Which servers the stack brings, and which the settings already name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from app.settings import Settings
from workers.dev.embedded import Server
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis


@dataclass(frozen=True, slots=True)
class Servers:
    """The embedded servers that run, and the addresses of both, embedded or not."""

    database_url: str
    redis_url: str | None
    embedded: list[Server] = field(default_factory=list[Server])


@contextmanager
def running(settings: Settings, root: Path) -> Iterator[Servers]:
    """Starts what the settings do not name; stops it in the end. Without a broker there is no Redis.

    Raises `ServerFailed`, `ServerBinariesMissing`.
    """
    with ExitStack() as stack:
        embedded: list[Server] = []

        def address(server: Server, setting: str) -> str:
            given: SecretStr = getattr(settings, setting)
            # A shell that has read this folder's own `env` still means the embedded server.
            if setting in settings.model_fields_set and not server.serves(given.get_secret_value()):
                return given.get_secret_value()
            embedded.append(stack.enter_context(server))
            return server.url

        database_url = address(Postgres(root), "database_url")
        redis_url = address(Redis(root), "redis_url") if settings.transport == "redis" else None
        yield Servers(database_url, redis_url, embedded)
