"""`outlast audit --repair`: mends what can be mended without guessing, and says what to do about the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from app.cli.exits import ExitCode, say
from app.cli.formats import Format, Row, show_document, show_rows
from app.cli.options import consent
from app.domain.findings import LEFT_ALONE, Finding, Mended
from app.domain.views import dump
from app.settings import Settings
from app.store.repairs import Repairs
from app.transport.connect import publisher
from workers.audit import Look, look, patient
from workers.broker_audit import Stuck

TITLES = ("what", "check", "job", "detail", "what to do")


@dataclass(frozen=True, slots=True)
class Order:
    """A repair as it was asked for, of the jobs from `since` on."""

    since: UUID
    reason: str
    actor: str
    dry_run: bool
    yes: bool


def run(settings: Settings, output: Format, order: Order) -> int:
    """0: nothing is broken any more; 6: something is left; 8: nothing could be mended, or nothing was meant to be.

    JSON is `{"ok", "mended": [{"check", "job_id", "done"}], "left": [{"check", "job_id", "detail", "what_to_do"}]}`.
    Raises `DatabaseAway`.
    """
    return asyncio.run(_run(settings, output, order))


async def _run(settings: Settings, output: Format, order: Order) -> ExitCode:
    async with patient(settings) as db:
        seen = await look(db, settings, order.since)
        if not seen.findings:
            _show(output, [], [], dry_run=order.dry_run)
            return seen.close()
        if not (order.dry_run or order.yes):
            say(f"{len(seen.findings)} finding(s); --dry-run shows what would be done")
            consent(order.yes, "mend what can be mended")
        mended = await repair(settings, seen, Repairs(db, order.reason, order.actor, keep=not order.dry_run))
        left = seen if order.dry_run else await look(db, settings, order.since)
    _show(output, mended, left.findings, dry_run=order.dry_run)
    return _close(mended, left, dry_run=order.dry_run)


async def repair(settings: Settings, seen: Look, repairs: Repairs) -> list[Mended]:
    """Mends what `seen` shows, one thing after the other. Raises `DatabaseAway`, `BrokerAway`."""
    mended: list[Mended] = []
    for check, job_id in dict.fromkeys((one.check, one.job_id) for one in seen.record):
        if job_id is not None:
            mended += await repairs.mend(check, job_id)
    return mended + await _clear(settings, [one for one in seen.stuck if not one.held], repairs)


async def _clear(settings: Settings, stuck: Sequence[Stuck], repairs: Repairs) -> list[Mended]:
    mended: list[Mended] = []
    if not stuck:
        return mended
    broker = publisher(settings)
    try:
        for one in stuck:
            entry = one.entry
            done = Mended("broker", entry.job_id, f"entry {entry.receipt} of queue {entry.queue} taken out")
            await repairs.note(done, lambda entry=entry: broker.remove(entry.queue, [entry]))
            mended.append(done)
    finally:
        await broker.close()
    return mended


def _show(output: Format, mended: Sequence[Mended], left: Sequence[Finding], *, dry_run: bool) -> None:
    told = [asdict(one) | {"what_to_do": LEFT_ALONE[one.check]} for one in left]
    if output is Format.JSON:
        show_document(dump({"ok": not left, "mended": [asdict(one) for one in mended], "left": told}))
        return
    word = "would mend" if dry_run else "mended"
    rows = [Row(str(m.job_id or "-"), dump(asdict(m)), (word, m.check, m.job_id, m.done, None)) for m in mended]
    if not dry_run:
        rows += [
            Row(str(one.job_id or "-"), dump(text), ("left", one.check, one.job_id, one.detail, text["what_to_do"]))
            for one, text in zip(left, told, strict=True)
        ]
    if rows or output is not Format.TABLE:
        show_rows(output, TITLES, rows)


def _close(mended: Sequence[Mended], left: Look, *, dry_run: bool) -> ExitCode:
    if dry_run:
        say(f"{len(mended)} repair(s) would be done; nothing was changed")
        return ExitCode.INVARIANT_BROKEN
    say(f"{len(mended)} repair(s)")
    code = left.close()
    return ExitCode.PARTLY_DONE if code is ExitCode.INVARIANT_BROKEN and mended else code
