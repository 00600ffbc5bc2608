"""`outlast job watch`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from app.cli.exits import ExitCode
from app.cli.formats import Format, cell
from app.cli.job_rows import retries
from app.cli.options import JobId, Output
from app.cli.session import on_database
from app.domain.states import TERMINAL, State
from app.domain.views import JobView, job_json
from app.settings import Settings
from app.store.database import Database
from app.usecases import read

POLL_SECONDS = 0.5


def watch(
    job_id: JobId,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds to wait; exit 7 after them.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Print a job each time it changes, until it has ended. Exit 0 when it is done, 1 when it ended otherwise."""

    async def work(db: Database, _: Settings) -> ExitCode:
        try:
            async with asyncio.timeout(timeout):
                return await _follow(db, job_id, output)
        except TimeoutError:
            return ExitCode.TIMED_OUT

    raise typer.Exit(on_database(work))


async def _follow(db: Database, job_id: JobId, output: Format) -> ExitCode:
    shown = ""
    while True:
        job = await read.job(db, job_id)
        line = _line(job, output)
        if line != shown:
            print(line, flush=True)
            shown = line
        if job.state in TERMINAL:
            return ExitCode.OK if job.state is State.DONE else ExitCode.ERROR
        await asyncio.sleep(POLL_SECONDS)


def _line(job: JobView, output: Format) -> str:
    match output:
        case Format.TABLE:
            parts = (job.id, job.state, job.reason, f"attempt {job.attempt}", f"retries {retries(job)}", job.progress)
            return "  ".join(cell(part) for part in parts)
        case Format.JSON | Format.JSONL:
            return job_json(job)
        case Format.IDS:
            return str(job.id)
