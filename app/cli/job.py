"""`outlast job`: one job, or a list of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated
from uuid import UUID

import typer

from app.cli.answers import AnswerSheet
from app.cli.formats import Format, Row, show_one, show_rows
from app.cli.job_rows import JOB_FIELDS, JOB_TITLES, job_row, job_sheet
from app.cli.job_submit import submit
from app.cli.job_watch import watch
from app.cli.options import (
    Actor,
    Cursor,
    Ids,
    JobId,
    Kind,
    Limit,
    Output,
    Queue,
    Since,
    Until,
    Yes,
    actor,
    consent,
    read_ids,
)
from app.cli.session import on_database
from app.domain.answers import Answer, refusal
from app.domain.errors import Refused
from app.domain.explain import explanation_json
from app.domain.filters import JobFilter
from app.domain.instants import rfc3339
from app.domain.reasons import checked_reason
from app.domain.states import State
from app.domain.timeline import timeline_json
from app.domain.views import dump
from app.settings import Settings
from app.store.database import Database
from app.usecases import read
from app.usecases.cancel import cancel
from app.usecases.explain import explain
from app.usecases.retry import retry

Reason = Annotated[str | None, typer.Option(help="Why, for the audit.")]

commands = typer.Typer(no_args_is_help=True, help="Submit, look at and steer jobs.")
commands.command("submit")(submit)
commands.command("watch")(watch)


@commands.command("list")
def list_jobs(
    state: Annotated[State | None, typer.Option(help="Only jobs in this state.")] = None,
    kind: Kind = None,
    queue: Queue = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = read.LIMIT_DEFAULT,
    cursor: Cursor = None,
    output: Output = Format.TABLE,
) -> None:
    """List jobs, newest first. since and until are about when a job was submitted."""
    filters = JobFilter(state, kind, queue, since, until)
    page = on_database(lambda db, _: read.jobs(db, filters, limit=limit, cursor=cursor))
    show_rows(output, JOB_TITLES, [job_row(job) for job in page.data], page.next_cursor)


@commands.command("show")
def show(job_id: JobId, output: Output = Format.TABLE) -> None:
    """Show a job as it is now, with its input and result."""
    job = on_database(lambda db, _: read.job(db, job_id))
    show_one(output, job_sheet(job), JOB_FIELDS)


@commands.command("explain")
def explain_job(job_id: JobId, output: Output = Format.TABLE) -> None:
    """Say why a job is where it is, what happens next and who must act."""
    found = on_database(lambda db, settings: explain(db, settings, job_id))
    next_at = None if found.next_at is None else rfc3339(found.next_at)
    cells = (found.job_id, found.state, found.reason, found.summary, found.next_event, next_at, found.who_acts)
    titles = ("job", "state", "reason", "summary", "next event", "next at", "who acts")
    show_one(output, Row(str(job_id), explanation_json(found), cells), titles)


@commands.command("timeline")
def show_timeline(job_id: JobId, output: Output = Format.TABLE) -> None:
    """Show what happened to a job, in order."""
    found = on_database(lambda db, _: read.timeline(db, job_id))
    if output is not Format.TABLE:
        show_one(output, Row(str(job_id), timeline_json(found), ()), ())
        return
    rows = [Row(str(job_id), "", (rfc3339(event.at), event.event, _details(event.details))) for event in found.events]
    show_rows(output, ("at", "event", "details"), rows)


@commands.command("cancel")
def cancel_jobs(
    ids: Ids, reason: Reason = None, yes: Yes = False, who: Actor = None, output: Output = Format.TABLE
) -> None:
    """Cancel jobs that have not ended. Cancelling a cancelled job changes nothing and is no error."""

    async def one(db: Database, _: Settings, job_id: UUID, why: str | None, by: str) -> str:
        return "cancelled" if await cancel(db, job_id, reason=why, actor=by) else "cancelled_before"

    _operate(ids, "cancel", one, reason, yes=yes, who=who, output=output)


@commands.command("retry")
def retry_jobs(
    ids: Ids, reason: Reason = None, yes: Yes = False, who: Actor = None, output: Output = Format.TABLE
) -> None:
    """Run dead jobs again inside the retry budget they were submitted with."""

    async def one(db: Database, settings: Settings, job_id: UUID, why: str | None, by: str) -> str:
        await retry(db, settings, job_id, reason=why, actor=by)
        return "retried"

    _operate(ids, "retry", one, reason, yes=yes, who=who, output=output)


def _operate(
    words: Sequence[str],
    verb: str,
    one: Callable[[Database, Settings, UUID, str | None, str], Awaitable[str]],
    reason: str | None,
    *,
    yes: bool,
    who: str | None,
    output: Format,
) -> None:
    """Does the same to each job, one by one; what is refused for one job does not stop the others."""
    why = None if reason is None else checked_reason(reason)
    ids = read_ids(words)
    consent(yes, f"{verb} {len(ids)} job(s)")
    sheet = AnswerSheet(output)

    async def each(db: Database, settings: Settings) -> None:
        for job_id in ids:
            try:
                sheet.add([Answer(job_id, await one(db, settings, job_id, why, actor(who)))])
            except Refused as refused:
                sheet.add([refusal(job_id, refused)])

    on_database(each)
    raise typer.Exit(sheet.close())


def _details(details: dict[str, object]) -> str:
    return " ".join(
        f"{name}={value if isinstance(value, str) else dump(value)}"
        for name, value in details.items()
        if value is not None
    )
