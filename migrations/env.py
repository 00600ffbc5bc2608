"""Runs the revisions over asyncpg, one migrator at a time."""

from __future__ import annotations

import asyncio
import os

import asyncpg
from alembic import context
from sqlalchemy import Connection, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

MIGRATION_LOCK = 7_236_001


def _run(connection: Connection) -> None:
    connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
    context.configure(connection=connection, transaction_per_migration=False, transactional_ddl=True)
    context.run_migrations()


async def _main() -> None:
    url = context.config.attributes.get("database_url") or os.environ["OUTLAST_DATABASE_URL"]
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(url, timeout=5), poolclass=pool.NullPool
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_run)
    finally:
        await engine.dispose()


asyncio.run(_main())
