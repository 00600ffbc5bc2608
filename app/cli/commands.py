"""Mounts the operator commands on the `outlast` command line."""

from __future__ import annotations

import typer

from app.cli import dead, effect, fleet, job


def mount(cli: typer.Typer) -> None:
    """Adds the groups of operator commands to `cli`."""
    cli.add_typer(job.commands, name="job")
    cli.add_typer(dead.commands, name="dead")
    cli.add_typer(effect.commands, name="effect")
    cli.add_typer(fleet.queue_commands, name="queue")
    cli.add_typer(fleet.workers_commands, name="workers")
