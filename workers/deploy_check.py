"""`outlast deploy check`: which jobs in flight a release could not run, asked before it is rolled out.

Run it with the release's own code. A job whose kind it has no handler for would wait; one whose input its model no
longer takes would be a dead letter (`invalid_input`) at its next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.progress import Progress

from app.cli.exits import ExitCode, say
from app.cli.formats import Format, Row, show_rows
from app.domain.views import dump
from app.settings import Settings
from app.store.database import Database
from app.store.in_flight import InFlight, in_flight
from workers.handling.failures import failure_of
from workers.registry import Registry, load

TITLES = ("job", "kind", "queue", "standing", "why")


@dataclass(frozen=True, slots=True)
class Stranded:
    """A job that the release could not run."""

    job_id: str
    kind: str
    queue: str
    standing: str
    why: str


@dataclass(slots=True)
class _Found:
    looked_at: int = 0
    count: int = 0
    shown: list[Stranded] = field(default_factory=list[Stranded])


def run(settings: Settings, output: Format, handlers: Sequence[str], *, dead_too: bool, limit: int) -> int:
    """Prints up to `limit` such jobs, oldest first. 0: there are none; 5: there are some.

    Raises `DatabaseAway`, `HandlersRefused`.
    """
    registry = load(handlers)
    found = asyncio.run(_look(settings, registry, dead_too=dead_too, limit=limit))
    show_rows(output, TITLES, [_row(one) for one in found.shown])
    more = f", the oldest {limit:,} shown" if found.count > len(found.shown) else ""
    say(f"of {found.looked_at:,} jobs in flight {found.count:,} could not be run by this release{more}")
    return ExitCode.CONFLICT if found.count else ExitCode.OK


async def _look(settings: Settings, registry: Registry, *, dead_too: bool, limit: int) -> _Found:
    found = _Found()
    db = await Database.open(settings, "deploy check", size_max=1)
    console = Console(stderr=True)
    try:
        with Progress(disable=not console.is_terminal, transient=True, console=console) as progress:
            bar = progress.add_task("jobs in flight", total=None)
            async for page in in_flight(db, dead_too=dead_too):
                for job in page:
                    _judge(job, registry, found, limit)
                progress.advance(bar, len(page))
    finally:
        await db.close()
    return found


def _judge(job: InFlight, registry: Registry, found: _Found, limit: int) -> None:
    found.looked_at += 1
    why = _why_not(job, registry)
    if why is None:
        return
    found.count += 1
    if len(found.shown) < limit:
        found.shown.append(Stranded(str(job.job_id), job.kind, job.queue, job.standing, why))


def _why_not(job: InFlight, registry: Registry) -> str | None:
    task = registry.get(job.kind)
    if task is None:
        return "no handler of this release takes its kind"
    try:
        task.input.validate_json(job.input)
    except Exception as error:  # validators are the author's code
        return f"its input is no longer taken: {failure_of(error).message}"
    return None


def _row(one: Stranded) -> Row:
    return Row(one.job_id, dump(asdict(one)), (one.job_id, one.kind, one.queue, one.standing, one.why))
