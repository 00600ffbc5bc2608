"""How a command says which dead letters it means: ids, or a filter on purpose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from app.cli.exits import ExitCode, say
from app.cli.formats import Format, Row, aligned, show_rows
from app.cli.options import consent, read_ids
from app.domain.filters import DeadFilter
from app.domain.states import Reason
from app.domain.views import dump
from app.store.database import Database
from app.usecases.selection import Selection, Survey, batches, survey

_is_fingerprint = re.compile(r"[0-9a-f]{1,64}").fullmatch


def fingerprint(text: str) -> str:
    if _is_fingerprint(text) is None:
        raise typer.BadParameter("a fingerprint is 1 to 64 hexadecimal digits")
    return text


Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID...]", help="Job ids; - reads them from stdin.")]
ReasonCode = Annotated[Reason | None, typer.Option("--reason-code", help="Only dead letters with this reason.")]
Fingerprint = Annotated[
    str | None, typer.Option(parser=fingerprint, metavar="HEX", help="Only dead letters that failed like this.")
]
Everything = Annotated[bool, typer.Option("--all", help="Every dead letter; an empty filter needs it.")]
Most = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many jobs.")]
Expect = Annotated[int | None, typer.Option(min=0, help="Exit 5 unless exactly so many jobs match.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen, and change nothing.")]
Why = Annotated[str | None, typer.Option("--reason", help="Why, for the audit; required.")]

IMPACT_TITLES = ("kind", "reason", "jobs", "blocked", "effects reused", "repeated", "unknown")


def selected(words: Sequence[str] | None, filters: DeadFilter, *, everything: bool, most: int | None) -> Selection:
    """The jobs meant: by id or by filter, not both; nothing at all only with `--all`."""
    filtered = filters != DeadFilter()
    if words:
        if filtered or everything:
            raise typer.BadParameter("give ids or a filter, not both")
        return Selection(ids=read_ids(words), limit=most)
    if not filtered and not everything:
        raise typer.BadParameter("say which: ids, a filter, or --all")
    return Selection(filters=filters, limit=most)


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a command on many goes on: only with `expect` jobs, not in a dry run, with consent unless `yes`."""

    expect: int | None
    dry_run: bool
    yes: bool
    output: Format


async def stopped(
    db: Database, selection: Selection, terms: Terms, what: str, replay_id: str | None = None
) -> ExitCode | None:
    """Why nothing is to be done, after showing what would be; None to go on. `what` is done to so many dead letters."""
    if terms.yes and terms.expect is None and not terms.dry_run:
        return None
    found = await survey(db, selection, replay_id)
    if terms.expect is not None and found.jobs != terms.expect:
        say(f"outlast: {found.jobs} job(s) match, not {terms.expect}; nothing was changed")
        return ExitCode.CONFLICT
    if terms.dry_run:
        await show_survey(db, terms.output, selection, found)
        return ExitCode.OK
    if not terms.yes:
        talk(found)
        consent(terms.yes, what.format(found.jobs))
    return None


def required(reason: str | None) -> str:
    if reason is None:
        raise typer.BadParameter("--reason is required")
    return reason


def talk(found: Survey) -> None:
    """Says on stderr what a selection comes to."""
    for line in aligned([IMPACT_TITLES, *(row.cells for row in impact_rows(found))]):
        say(line)


async def show_survey(db: Database, output: Format, selection: Selection, found: Survey) -> None:
    """Prints what a selection comes to; as ids, the jobs themselves."""
    match output:
        case Format.TABLE | Format.JSONL:
            show_rows(output, IMPACT_TITLES, impact_rows(found))
        case Format.JSON:
            print(dump({"jobs": found.jobs, "data": [asdict(part) for part in found.impact]}))
        case Format.IDS:
            async for batch in batches(db, selection):
                for job_id in batch:
                    print(job_id)
    say(f"{found.jobs} job(s) selected; nothing was changed")


def impact_rows(found: Survey) -> list[Row]:
    return [
        Row(
            f"{part.kind}/{part.reason}",
            dump(asdict(part)),
            (part.kind, part.reason, part.jobs, part.blocked, part.reused, part.repeated, part.unknown),
        )
        for part in found.impact
    ]
