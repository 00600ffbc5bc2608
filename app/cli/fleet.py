"""`outlast queue` and `outlast workers`: the lanes of jobs, and the processes that serve them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.formats import Format, Row, show_rows
from app.cli.options import Output
from app.cli.session import on_database
from app.domain.explain import COUNT_MAX
from app.domain.instants import rfc3339
from app.domain.views import dump
from app.settings import Settings
from app.store import roster
from app.store.database import Database
from app.store.roster import Lane, Listed

QUEUE_TITLES = ("queue", "waiting", "oldest", "deferred", "running", "slots", "workers", "dead")
WORKER_TITLES = (
    "id",
    "role",
    "host",
    "pid",
    "status",
    "heartbeat",
    "running",
    "slots",
    "queues",
    "started at",
    "cause",
)

queue_commands = typer.Typer(no_args_is_help=True, help="Look at queues.")
workers_commands = typer.Typer(no_args_is_help=True, help="Look at the processes that do the work.")


@queue_commands.callback()
def queue_group() -> None:
    """Look at queues."""


@workers_commands.callback()
def workers_group() -> None:
    """Look at the processes that do the work."""


@queue_commands.command("list")
def list_queues(output: Output = Format.TABLE) -> None:
    """List queues that hold jobs or are served: what waits, runs and is dead."""
    lanes = on_database(lambda db, settings: roster.lanes(db, settings.suspect_seconds))
    show_rows(output, QUEUE_TITLES, [_lane(lane) for lane in lanes])


@workers_commands.command("list")
def list_workers(
    everyone: Annotated[bool, typer.Option("--all", help="Also those that have left.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """List worker and relay processes, newest first."""

    async def work(db: Database, settings: Settings) -> list[Row]:
        return [_worker(one, settings) for one in await roster.workers(db, left_too=everyone)]

    show_rows(output, WORKER_TITLES, on_database(work))


def _lane(lane: Lane) -> Row:
    oldest = None if lane.oldest_seconds is None else f"{lane.oldest_seconds:.1f} s"
    counts = (_count(lane.deferred), _count(lane.running), lane.slots, lane.workers, _count(lane.dead))
    return Row(lane.queue, dump(asdict(lane)), (lane.queue, _count(lane.waiting), oldest, *counts))


def _count(number: int) -> str:
    return f"{COUNT_MAX:,}+" if number >= COUNT_MAX else str(number)


def _worker(one: Listed, settings: Settings) -> Row:
    status = _status(one, settings)
    cells = (
        *(one.id, one.role, one.host, one.pid, status, f"{one.silent_seconds:.1f} s ago", one.running, one.slots),
        *(",".join(one.queues), rfc3339(one.started_at), one.left_cause),
    )
    return Row(str(one.id), dump(asdict(one) | {"status": status}), cells)


def _status(one: Listed, settings: Settings) -> str:
    if one.left_at is not None:
        return "left"
    if one.silent_seconds > settings.suspect_seconds:
        return "silent"
    if one.draining:
        return "draining"
    return "leader" if one.leader else "live"
