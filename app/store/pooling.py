"""Whether a session is our own, or a pooler hands it to others between two transactions.

The locks of workers and of the relay's leader, and listening, belong to a session of the server. Behind a pooler in
transaction mode they would end up with whoever is given that session next, and stay there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import asyncpg

LOOKS = 3

Open = Callable[[], Awaitable[asyncpg.Connection]]


async def is_shared(session: asyncpg.Connection, open_another: Open, backend: str) -> bool:
    """Whether the server works for `session` on a backend that others get, too; `backend` asks for its process id.

    Told from the start of the connection, a direct one knows the right id. A pooler tells one of its own, and shows
    what it does as soon as a second connection is in the midst of a transaction.
    """
    try:
        if await session.fetchval(backend) == session.get_server_pid():
            return False
        another = await open_another()
        try:
            return any([await _changes_hands(session, another, backend) for _ in range(LOOKS)])
        finally:
            another.terminate()
    except (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError):
        # A statement that was just prepared is not there, or one that was not is.
        return True


async def _changes_hands(session: asyncpg.Connection, another: asyncpg.Connection, backend: str) -> bool:
    before = await session.fetchval(backend)
    async with another.transaction():
        others = await another.fetchval(backend)
        return before == others or before != await session.fetchval(backend)
