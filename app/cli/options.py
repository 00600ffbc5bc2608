"""Options that mean the same in every command."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

import typer

from app.cli.formats import Format
from app.domain.kinds import NAME_PATTERN, is_name
from app.domain.request import read_instant

Output = Annotated[Format, typer.Option("--output", "-o", help="How data is printed.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Actor = Annotated[
    str | None, typer.Option("--actor", help="Who does this, for the audit; OUTLAST_ACTOR, else user@host, by default.")
]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Job ids; - reads them from stdin.")]
JobId = Annotated[UUID, typer.Argument(metavar="ID", help="The job's id.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="Most rows of one page.")]
Cursor = Annotated[str | None, typer.Option(help="Where the last page stopped.")]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_is_age = re.compile(r"([0-9]{1,6})([smhd])").fullmatch


def moment(text: str) -> datetime:
    """An instant: RFC 3339 with a zone, or an age such as `90s`, `15m`, `6h`, `7d`."""
    age = _is_age(text)
    try:
        if age is None:
            return read_instant(text)
        return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
    except OverflowError:
        raise typer.BadParameter("that is before all times") from None
    except ValueError as error:
        raise typer.BadParameter(f"{error}, or an age such as 15m, 6h, 7d") from None


def name(text: str) -> str:
    """What can name a kind or a queue: a filter by anything else would silently find nothing."""
    if not is_name(text):
        raise typer.BadParameter(f"a name matches {NAME_PATTERN}")
    return text


Kind = Annotated[str | None, typer.Option(parser=name, metavar="NAME", help="Only those of this kind.")]
Queue = Annotated[str | None, typer.Option(parser=name, metavar="NAME", help="Only those of this queue.")]
Since = Annotated[datetime | None, typer.Option(parser=moment, metavar="TIME", help="From this time on, or age: 6h.")]
Until = Annotated[datetime | None, typer.Option(parser=moment, metavar="TIME", help="Before this time, or age: 6h.")]


def read_ids(words: Sequence[str]) -> list[UUID]:
    """Job ids in the order given, without repeats; `-` stands for those on stdin, separated by white space."""
    texts = [text for word in words for text in (sys.stdin.read().split() if word == "-" else [word])]
    try:
        return list(dict.fromkeys(UUID(text) for text in texts))
    except ValueError:
        raise typer.BadParameter("an id is a UUID") from None


def actor(given: str | None) -> str:
    """Who acts: the option, `OUTLAST_ACTOR`, or the user of this machine."""
    named = given or os.environ.get("OUTLAST_ACTOR")
    if named:
        return named
    user = "unknown"
    with suppress(OSError, KeyError):
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()}"


def refuse_unasked(yes: bool) -> None:
    """Nothing is written without `--yes` when there is no terminal to ask on (exit 2)."""
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter("without a terminal to ask on, this needs --yes")


def consent(yes: bool, what: str) -> None:
    """Asks on a terminal unless `--yes` is given. Exit 1 when the answer is no."""
    refuse_unasked(yes)
    if not yes and not typer.confirm(f"{what}?", err=True):
        raise typer.Exit(1)
