"""`outlast job submit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.formats import Format, show_one
from app.cli.job_rows import JOB_FIELDS, job_sheet
from app.cli.options import Output, Yes
from app.cli.session import on_database
from app.domain import jsontext
from app.domain.jsontext import JsonObject
from app.domain.request import read_key, read_request
from app.settings import Settings
from app.store.database import Database
from app.usecases.kinds import Catalog
from app.usecases.submit import Submitted, Submitter


def submit(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What kind of job.")],
    input_text: Annotated[
        str, typer.Option("--input", "-i", metavar="JSON", help="The input; @FILE reads a file, - reads stdin.")
    ] = "{}",
    queue: Annotated[str | None, typer.Option(help="Its queue.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 is first, 9 is last.")] = None,
    run_at: Annotated[str | None, typer.Option(metavar="TIME", help="Not before this time (RFC 3339).")] = None,
    delay_seconds: Annotated[float | None, typer.Option(help="Not before so many seconds from now.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help="Not after this time (RFC 3339).")] = None,
    timeout_seconds: Annotated[float | None, typer.Option(help="What one attempt may take.")] = None,
    max_retries: Annotated[int | None, typer.Option(help="Further attempts after the first.")] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="An object kept with the job.")] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="The same key and request make one job.")] = None,
    yes: Yes = False,
    output: Output = Format.IDS,
) -> None:
    """Submit a job. Prints its id."""
    del yes  # a submit is never asked about
    fields: JsonObject = {
        "queue": queue,
        "priority": priority,
        "run_at": run_at,
        "delay_seconds": delay_seconds,
        "deadline": deadline,
        "timeout_seconds": timeout_seconds,
        "max_retries": max_retries,
        "metadata": None if metadata is None else jsontext.read(metadata),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    request = read_request({"kind": kind, "input": jsontext.read(_input(input_text)), **given})
    key = None if idempotency_key is None else read_key(idempotency_key)

    async def work(db: Database, settings: Settings) -> Submitted:
        submitter = Submitter(db, Catalog(db), settings)
        try:
            return await submitter.submit(request, key=key)
        finally:
            await submitter.drain()

    show_one(output, job_sheet(on_database(work).job), JOB_FIELDS)


def _input(text: str) -> bytes | str:
    if text == "-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{text[1:]}: {error.strerror}") from None
