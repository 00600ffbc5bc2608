"""What the hot statements read, with a history behind them and a backlog before them: a batch, never the pile.

Each is explained and run with the settings of our sessions: planned for its values, planned for any values, as our
sessions do, and as it was planned when there was nothing yet, as in a new database or a new week.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from app.settings import Settings
from app.store.database import Session, connect, sql
from bench.load_history import Sizes, load
from tests.integration.explaining import excesses, execution
from tests.integration.piles import ANY, MORE, Case, cases, sample_of

NOTHING = Sizes(outcomes=0, dead=0, waiting=0)
NEW_WEEK = Sizes(outcomes=5_000, dead=2_000, waiting=2_000)
HISTORY = Sizes(outcomes=50_000, dead=20_000, waiting=20_000)


@asynccontextmanager
async def session_of(settings: Settings) -> AsyncIterator[Session]:
    session = await connect(settings, "test")
    try:
        yield session
    finally:
        session.terminate()


async def pile_up(settings: Settings, sizes: Sizes, *, analyzed: bool) -> None:
    """A history, dead letters, a backlog, and a worker that holds leases."""
    await load(settings, sizes, lambda _: None, analyzed=analyzed)
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    await connection.execute(MORE)
    if analyzed:
        await connection.execute("ANALYZE")
    await connection.close()


async def prepare(session: Session, some: list[Case]) -> dict[str, Case]:
    """The cases by the names of their prepared statements."""
    prepared = {f"case_{nth}": case for nth, case in enumerate(some)}
    for name, case in prepared.items():
        await session.execute(f"PREPARE {name} AS {sql(case.name)}")
    return prepared


async def wrong(session: Session, prepared: dict[str, Case]) -> list[tuple[str, list[str]]]:
    found = [(case.name, await excesses(session, case, name)) for name, case in prepared.items()]
    return [(name, what) for name, what in found if what]


async def test_no_statement_of_a_job_reads_more_than_a_batch_however_much_there_is(settings: Settings) -> None:
    await pile_up(settings, HISTORY, analyzed=True)
    async with session_of(settings) as session:
        prepared = await prepare(session, cases(await sample_of(session)))
        for plan in ("force_custom_plan", "force_generic_plan"):
            await session.execute(f"SET plan_cache_mode = {plan}")
            assert (plan, await wrong(session, prepared)) == (plan, [])


async def test_a_plan_that_was_made_over_nothing_reads_no_more_than_a_batch(settings: Settings) -> None:
    await load(settings, NOTHING, lambda _: None, analyzed=False)  # partitions, which would have all planned anew
    async with session_of(settings) as session:
        blank = await prepare(session, cases(ANY))
        for name, case in blank.items():
            await session.fetch(f"EXPLAIN {execution(name, case.args)}")
        await pile_up(settings, NEW_WEEK, analyzed=False)
        filled = cases(await sample_of(session))
        assert await wrong(session, dict(zip(blank, filled, strict=True))) == []
