"""The only place that opens PostgreSQL connections, and the one that names its failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

import asyncpg

from app.domain.errors import DatabaseAway, SharedSession, Unstorable
from app.settings import Settings
from app.store.known_types import KnowingConnection
from app.store.pooling import is_shared

Record = asyncpg.Record
Connection = asyncpg.pool.PoolConnectionProxy | asyncpg.Connection
Session = asyncpg.Connection

CONNECT_SECONDS = 5.0
IDLE_SECONDS_LEAST = 5.0
KEEPALIVE_SECONDS = 5
SHARED = (
    "OUTLAST_DATABASE_URL leads through a pooler that gives a session to others between two transactions; locks and "
    "listening need sessions of their own: use its session mode, or PostgreSQL's own address"
)

AWAY = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    # There, but full, stopping, failing over, or busy with somebody else: sent again, the statement may do.
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.InternalServerError,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidCachedStatementError,
    # There, but not ours to use yet: no such database, not this password, not migrated.
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.UndefinedTableError,
)

UNSTORABLE = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.ProgramLimitExceededError)

_SQL = Path(__file__).parent / "sql"


@cache
def sql(name: str) -> str:
    """The text of the statement in `sql/<name>.sql`."""
    return (_SQL / f"{name}.sql").read_text(encoding="utf-8")


@asynccontextmanager
async def away_named() -> AsyncIterator[None]:
    """Turns the driver's ways of saying "the server is gone" into `DatabaseAway`."""
    try:
        yield
    except AWAY as error:
        raise DatabaseAway(f"{type(error).__name__}: {error}") from error


async def connect(settings: Settings, role: str, *, timeout_seconds: float | None = None) -> asyncpg.Connection:
    """One connection outside the pool, for sessions that must be their own (locks, listening).

    `timeout_seconds` bounds each statement; the setting by default. Raises `DatabaseAway`, as `SharedSession` where
    a pooler would give the session to others.
    """

    async def connected() -> asyncpg.Connection:
        return await asyncpg.connect(
            settings.database_url.get_secret_value(),
            timeout=CONNECT_SECONDS,
            command_timeout=timeout_seconds or settings.database_timeout_seconds,
            server_settings=_session(settings, role),
            connection_class=KnowingConnection,
        )

    async with away_named():
        session = await connected()
        try:
            if await is_shared(session, connected, sql("backend")):
                raise SharedSession(SHARED)
        except BaseException:
            session.terminate()
            raise
    return session


def _session(settings: Settings, role: str) -> dict[str, str]:
    return {
        "application_name": f"outlast {role}",
        # Plans are made while tables are small and kept while they grow: a sequential scan must never look cheap, and
        # nothing here is worth compiling.
        "enable_seqscan": "off",
        # One plan for all values from the first time on: a new session would plan each statement five times over.
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
        # A process that froze in a transaction, or a host that is gone, must not keep what it has locked.
        "idle_in_transaction_session_timeout": str(round(max(settings.lease_seconds, IDLE_SECONDS_LEAST) * 1_000)),
        "tcp_keepalives_idle": str(KEEPALIVE_SECONDS),
        "tcp_keepalives_interval": str(KEEPALIVE_SECONDS),
        "tcp_keepalives_count": "3",
    }


async def _keep_session(_connection: Connection) -> None:
    """Instead of asyncpg's reset of everything, which is a round trip after each statement, and one that can fail
    after a commit. What a session may leave open is a transaction, and the pool ends that before it asks us.
    """


class Database:
    """A pool of connections that runs named statements."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, settings: Settings, role: str, *, size_max: int | None = None) -> Self:
        """Opens the pool; the first connection is made on first use.

        Raises `DatabaseAway` only for an address that cannot be parsed or resolved.
        """
        async with away_named():
            pool = await asyncpg.create_pool(
                settings.database_url.get_secret_value(),
                min_size=0,
                max_size=size_max or settings.database_pool_max,
                timeout=CONNECT_SECONDS,
                command_timeout=settings.database_timeout_seconds,
                server_settings=_session(settings, role),
                connection_class=KnowingConnection,
                reset=_keep_session,
            )
        return cls(pool)

    async def close(self) -> None:
        """Closes the pool; connections that do not end in 2 s are dropped."""
        try:
            await asyncio.wait_for(self._pool.close(), 2)
        except (TimeoutError, *AWAY):
            self._pool.terminate()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """A connection for several statements. Raises `DatabaseAway`."""
        async with away_named(), self._pool.acquire(timeout=CONNECT_SECONDS) as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside one transaction; its session is as new afterwards. Raises `DatabaseAway`."""
        async with self.session() as connection:
            try:
                async with connection.transaction():
                    yield connection
            finally:
                if not connection.is_closed():
                    await connection.reset()

    async def fetch(self, name: str, *args: Any) -> list[Record]:
        """All rows of the statement `name`. Raises `DatabaseAway`."""
        async with self.session() as connection:
            return await connection.fetch(sql(name), *args)

    async def write(self, name: str, *args: Any) -> list[Record]:
        """As `fetch`; raises `Unstorable` for values that no sending again would make fit."""
        try:
            return await self.fetch(name, *args)
        except UNSTORABLE as error:
            raise Unstorable(f"{type(error).__name__}: {error}"[:500]) from error

    async def fetchrow(self, name: str, *args: Any) -> Record | None:
        """The first row of the statement `name`. Raises `DatabaseAway`."""
        async with self.session() as connection:
            return await connection.fetchrow(sql(name), *args)

    async def fetchval(self, name: str, *args: Any) -> Any:
        """The first value of the statement `name`. Raises `DatabaseAway`."""
        async with self.session() as connection:
            return await connection.fetchval(sql(name), *args)
