"""`outlast dead`: dead letters, one by one and in bulk."""

from __future__ import annotations

from dataclasses import asdict

import typer

from app.cli.dead_discard import discard
from app.cli.dead_replay import replay
from app.cli.formats import Format, Row, show_one, show_rows
from app.cli.job_rows import JOB_FIELDS, job_sheet, retries, when
from app.cli.options import Cursor, JobId, Kind, Limit, Output, Queue, Since, Until
from app.cli.selecting import Fingerprint, ReasonCode
from app.cli.session import on_database
from app.domain.filters import DeadFilter
from app.domain.views import JobView, dead_letter_json, dump
from app.store import dead_letters
from app.store.dead_letters import DeadGroup
from app.usecases import read

TITLES = ("id", "kind", "queue", "reason", "attempt", "retries", "crashes", "died at", "fingerprint", "error")
GROUP_TITLES = ("jobs", "kind", "reason", "fingerprint", "first died at", "last died at", "latest", "type", "message")

commands = typer.Typer(no_args_is_help=True, help="Read, replay and discard dead letters.")
commands.command("replay")(replay)
commands.command("discard")(discard)


@commands.command("list")
def list_dead(
    kind: Kind = None,
    reason: ReasonCode = None,
    queue: Queue = None,
    fingerprint: Fingerprint = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = read.LIMIT_DEFAULT,
    cursor: Cursor = None,
    output: Output = Format.TABLE,
) -> None:
    """List dead letters, newest death first. since and until are about the time of death."""
    filters = DeadFilter(kind, reason, queue, fingerprint, since, until)
    page = on_database(lambda db, _: read.dead_letters(db, filters, limit=limit, cursor=cursor))
    show_rows(output, TITLES, [_row(job) for job in page.data], page.next_cursor)


@commands.command("groups")
def groups(output: Output = Format.TABLE) -> None:
    """Group dead letters that failed alike, largest group first."""
    found = on_database(lambda db, _: dead_letters.dead_groups(db))
    show_rows(output, GROUP_TITLES, [_group(group) for group in found])


@commands.command("show")
def show(job_id: JobId, output: Output = Format.TABLE) -> None:
    """Show a dead letter with its input and error."""
    job = on_database(lambda db, _: read.dead_letter(db, job_id))
    sheet = job_sheet(job)
    row = Row(sheet.id, dead_letter_json(job), (*sheet.cells, job.fingerprint))
    show_one(output, row, (*JOB_FIELDS, "fingerprint"))


def _row(job: JobView) -> Row:
    cells = (
        *(job.id, job.kind, job.queue, job.reason, job.attempt, retries(job), job.crashes),
        *(when(job.finished_at), job.fingerprint, job.error),
    )
    return Row(str(job.id), dead_letter_json(job, payloads=False), cells)


def _group(group: DeadGroup) -> Row:
    cells = (
        *(group.jobs, group.kind, group.reason, group.fingerprint),
        *(when(group.first_died_at), when(group.last_died_at), group.latest_id),
        *(group.error_type, group.error_message),
    )
    return Row(str(group.latest_id), dump(asdict(group)), cells)
