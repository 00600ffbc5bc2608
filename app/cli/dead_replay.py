"""`outlast dead replay`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated
from uuid import uuid4

import typer

from app.cli.answers import AnswerSheet
from app.cli.exits import ExitCode, say
from app.cli.formats import Format
from app.cli.options import Actor, Kind, Output, Queue, Since, Until, Yes, actor, refuse_unasked
from app.cli.pace import Pace
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
from app.usecases import replay as usecase
from app.usecases.selection import Selection, batches, pinned

_is_replay_id = re.compile(r"[A-Za-z0-9._:-]{1,200}").fullmatch
_rate = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:/s)?").fullmatch


@dataclass(frozen=True, slots=True)
class Order:
    """A replay as it was asked for. `rate` is in jobs a second."""

    selection: Selection
    replay_id: str
    reason: str | None
    actor: str
    rate: float | None
    terms: Terms


def rate_of(text: str) -> float:
    """`200/s` or `200`: jobs a second."""
    found = _rate(text)
    if found is None or float(found[1]) <= 0:
        raise typer.BadParameter("a rate is jobs a second, such as 200/s")
    return float(found[1])


def replay_id_of(text: str) -> str:
    if _is_replay_id(text) is None:
        raise typer.BadParameter("a replay id is 1 to 200 letters, digits and . _ : -")
    return text


Rate = Annotated[float | None, typer.Option(parser=rate_of, metavar="N/s", help="At most so many jobs a second.")]
ReplayId = Annotated[
    str | None,
    typer.Option(parser=replay_id_of, metavar="NAME", help="Goes on where a replay of this name stopped."),
]


def replay(
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
    rate: Rate = None,
    most: Most = None,
    expect: Expect = None,
    replay_id: ReplayId = None,
    yes: Yes = False,
    who: Actor = None,
    output: Output = Format.TABLE,
) -> None:
    """Run dead letters again with fresh budgets.

    Each job is replayed once under one replay id, however often the command is killed and run again with it.
    """
    filters = DeadFilter(kind, reason_code, queue, fingerprint, since, until)
    order = Order(
        selection=selected(ids, filters, everything=everything, most=most),
        replay_id=replay_id or f"cli-{uuid4()}",
        reason=None if dry_run else checked_reason(required(reason)),
        actor=actor(who),
        rate=rate,
        terms=Terms(expect, dry_run, yes, output),
    )
    if not dry_run:
        refuse_unasked(yes)
    raise typer.Exit(on_database(lambda db, settings: _carry_out(db, settings, order)))


async def _carry_out(db: Database, _: Settings, order: Order) -> ExitCode:
    selection = await pinned(db, order.selection, order.replay_id)
    code = await stopped(db, selection, order.terms, "replay {} dead letter(s)", order.replay_id)
    if code is not None:
        return code
    say(f"replay id {order.replay_id}: if this is cut off, run it again with --replay-id {order.replay_id}")
    return await _replay(db, selection, order)


async def _replay(db: Database, selection: Selection, order: Order) -> ExitCode:
    assert order.reason is not None
    sheet = AnswerSheet(order.terms.output, {"replay_id": order.replay_id})
    pace = Pace(order.rate)
    async for batch in batches(db, selection, size=pace.batch_max):
        await pace.before(len(batch))
        sheet.add(await usecase.replay(db, batch, replay_id=order.replay_id, reason=order.reason, actor=order.actor))
    return sheet.close()
