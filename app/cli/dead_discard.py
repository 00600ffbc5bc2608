"""`outlast dead discard`."""

from __future__ import annotations

import typer

from app.cli.answers import AnswerSheet
from app.cli.exits import ExitCode
from app.cli.formats import Format
from app.cli.options import Actor, Kind, Output, Queue, Since, Until, Yes, actor, refuse_unasked
from app.cli.selecting import (
    DryRun,
    Everything,
    Expect,
    Fingerprint,
    Ids,
    Most,
    ReasonCode,
    Terms,
    Why,
    required,
    selected,
    stopped,
)
from app.cli.session import on_database
from app.domain.filters import DeadFilter
from app.domain.reasons import checked_reason
from app.settings import Settings
from app.store.database import Database
from app.usecases import discard as usecase
from app.usecases.selection import batches, pinned


def discard(
    ids: Ids = None,
    kind: Kind = None,
    reason_code: ReasonCode = None,
    fingerprint: Fingerprint = None,
    since: Since = None,
    until: Until = None,
    queue: Queue = None,
    everything: Everything = False,
    dry_run: DryRun = False,
    reason: Why = None,
    most: Most = None,
    expect: Expect = None,
    yes: Yes = False,
    who: Actor = None,
    output: Output = Format.TABLE,
) -> None:
    """Give dead letters up for good: they end as cancelled. Their errors stay in the audit."""
    filters = DeadFilter(kind, reason_code, queue, fingerprint, since, until)
    asked = selected(ids, filters, everything=everything, most=most)
    why = None if dry_run else checked_reason(required(reason))
    if not dry_run:
        refuse_unasked(yes)
    terms = Terms(expect, dry_run, yes, output)

    async def work(db: Database, _: Settings) -> ExitCode:
        selection = await pinned(db, asked)
        code = await stopped(db, selection, terms, "discard {} dead letter(s) for good")
        if code is not None:
            return code
        assert why is not None
        sheet = AnswerSheet(output)
        async for batch in batches(db, selection):
            sheet.add(await usecase.discard(db, batch, reason=why, actor=actor(who)))
        return sheet.close()

    raise typer.Exit(on_database(work))
