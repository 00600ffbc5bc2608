"""Mounts the operator commands on the `outlast` command line."""

from __future__ import annotations

import typer


def mount(cli: typer.Typer) -> None:
    """Adds the groups of operator commands to `cli`."""
