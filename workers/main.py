"""`outlast`: the operator commands of `app.cli`, and the processes that do the work.

Every command imports what it runs when it runs, so that `outlast job list` pays for no worker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.commands import mount
from app.cli.exits import exit_code_of, read_settings
from app.cli.formats import Format
from app.cli.options import Actor, Output, Since, Yes, actor, refuse_unasked
from app.cli.selecting import DryRun, Why, required
from app.cli.text import refuse_what_is_no_text, speak_utf8
from app.domain.reasons import checked_reason

Handlers = Annotated[
    list[str] | None, typer.Option("--handlers", help="Module that defines handlers; may be given again.")
]

EXAMPLE = "workers.handlers.ticket_triage"

cli = typer.Typer(
    name="outlast",
    help="Jobs that outlast their workers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

deploy_commands = typer.Typer(no_args_is_help=True, help="Ask before a release is rolled out.")


@deploy_commands.callback()
def deploy_group() -> None:
    """Ask before a release is rolled out."""


@cli.command()
def dev(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the API; 0 takes a free one.")] = 8080,
    data: Annotated[Path, typer.Option(help="Folder of the servers' data, env and pids.")] = Path(".outlast"),
    workers: Annotated[int, typer.Option(min=0, help="Worker supervisors to run.")] = 1,
    handlers: Handlers = None,
) -> None:
    """Run all of it on this machine, with PostgreSQL and Redis embedded; without handlers, the example's."""
    from workers.dev import command

    settings = read_settings()
    modules = handlers or settings.handler_modules or [EXAMPLE]
    raise typer.Exit(command.run(settings, port=port, data=data, workers=workers, handlers=modules))


@cli.command()
def api(
    host: Annotated[str | None, typer.Option(help="Address to bind; OUTLAST_API_HOST by default.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind; OUTLAST_API_PORT by default.")] = None,
) -> None:
    """Serve the HTTP API."""
    from app.api.serve import serve

    settings = read_settings()
    raise typer.Exit(serve(settings, host or settings.api_host, settings.api_port if port is None else port))


@cli.command()
def relay() -> None:
    """Publish what waits in the outbox; the leader also sweeps and cleans."""
    from workers import relay as process

    raise typer.Exit(process.run(read_settings()))


@cli.command()
def worker(
    processes: Annotated[int, typer.Option(min=1, help="Child processes that run jobs.")] = 1,
    handlers: Handlers = None,
    queues: Annotated[str | None, typer.Option(help="Comma-separated queues to serve.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Jobs one child runs at once.")] = None,
) -> None:
    """Run jobs: a supervisor with child processes."""
    from workers import supervisor

    if not (handlers or read_settings().handler_modules):
        raise typer.BadParameter("a worker needs handlers: --handlers MODULE, or OUTLAST_HANDLERS")
    _export("HANDLERS", ",".join(handlers) if handlers else None)
    _export("QUEUES", queues)
    _export("WORKER_CONCURRENCY", concurrency)
    raise typer.Exit(supervisor.run(read_settings(), processes))


@cli.command()
def migrate(handlers: Handlers = None) -> None:
    """Bring the database to the newest revision; with --handlers, publish their kinds too."""
    from workers import migration

    raise typer.Exit(migration.run(read_settings(), handlers or []))


@cli.command()
def audit(
    since: Since = None,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again; a line when findings change.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks of --watch.")] = 10.0,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended without guessing.")] = False,
    dry_run: DryRun = False,
    reason: Why = None,
    yes: Yes = False,
    who: Actor = None,
    output: Output = Format.TABLE,
) -> None:
    """Check the record: exit 8 and the jobs concerned when an invariant is broken.

    --since looks only at jobs submitted since then: a whole history costs about 3 s for a million jobs.
    """
    from workers import audit as process
    from workers import audit_repair, audit_watch

    first = process.first_of(since)
    if repair:
        if watch:
            raise typer.BadParameter("--repair or --watch, not both")
        why = "" if dry_run else checked_reason(required(reason))
        if not dry_run:
            refuse_unasked(yes)
        order = audit_repair.Order(first, why, actor(who), dry_run, yes)
        raise typer.Exit(audit_repair.run(read_settings(), output, order))
    if watch:
        raise typer.Exit(audit_watch.run(read_settings(), output, first, interval))
    raise typer.Exit(process.run(read_settings(), output, first))


@cli.command()
def doctor(output: Output = Format.TABLE) -> None:
    """Check settings, servers, processes and what is about to go."""
    from workers import doctor as process

    raise typer.Exit(process.run(read_settings(), output))


@deploy_commands.command("check")
def deploy_check(
    handlers: Handlers = None,
    dead: Annotated[bool, typer.Option("--dead", help="Also dead letters, which may be replayed.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Most jobs to show.")] = 1_000,
    output: Output = Format.TABLE,
) -> None:
    """List jobs in flight that this release could not run: no handler, or an input it no longer takes. Exit 5."""
    from workers import deploy_check as process

    settings = read_settings()
    modules = handlers or settings.handler_modules
    if not modules:
        raise typer.BadParameter("name the release's handlers: --handlers MODULE, or OUTLAST_HANDLERS")
    raise typer.Exit(process.run(settings, output, modules, dead_too=dead, limit=limit))


mount(cli)
cli.add_typer(deploy_commands, name="deploy")


def _export(name: str, value: object | None) -> None:
    """An option goes into the environment, where the processes this one starts look for it."""
    if value is not None:
        os.environ[f"OUTLAST_{name}"] = str(value)


def main() -> None:
    speak_utf8()
    sys.exit(exit_code_of(_run))


def _run() -> None:
    refuse_what_is_no_text([*sys.argv[1:], os.environ.get("OUTLAST_ACTOR", "")])
    cli(prog_name="outlast")


if __name__ == "__main__":
    main()
