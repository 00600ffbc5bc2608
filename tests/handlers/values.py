"""Handlers that give back what they were given, and handlers that return or raise what is hard to keep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from outlast import Context, task


class How(BaseModel):
    how: str
    size: int = 0


@task("value.echo")
async def echo(ctx: Context, value: Any) -> Any:
    """What came in; a number has been one on the way."""
    return value + 1 - 1 if isinstance(value, int) and not isinstance(value, bool) else value


RETURNED: dict[str, Callable[[], Any]] = {
    "NaN": lambda: float("nan"),
    "Infinity": lambda: {"a": [float("inf")]},
    "-Infinity": lambda: float("-inf"),
    "Decimal NaN": lambda: Decimal("NaN"),
    "a Decimal": lambda: Decimal("0.1"),
    "an instant": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "a day": lambda: date(2026, 1, 1),
    "a duration": lambda: timedelta(seconds=1),
    "a set": lambda: {1, 2},
    "bytes": lambda: b"abc",
    "a complex number": lambda: 1j,
    "a NUL": lambda: "a\0b",
    "a NUL in a key": lambda: {"a\0": 1},
    "a lone surrogate": lambda: {"a": ["\ud800"]},
    "a key that is no text": lambda: {1: "one"},
    "4,301 digits": lambda: 10**4_300,
    "101 levels": lambda: nested(101),
}


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@task("value.return")
async def return_(ctx: Context, how: How) -> Any:
    return RETURNED[how.how]()


@task("value.record")
async def record(ctx: Context, how: How) -> str:
    """As `value.return`, as the result of an effect."""

    async def make() -> Any:
        return RETURNED[how.how]()

    await ctx.effect("make", make)
    return "recorded"


class Told(Exception):
    """Says whatever it was given."""


def not_utf8() -> str:
    return b"caf\xe9 \xff".decode("utf-8", "surrogateescape")


RAISED: dict[str, Callable[[], str]] = {
    "a NUL": lambda: "before\0after",
    "a lone surrogate": lambda: "before\ud800after",
    "bytes that are no UTF-8": not_utf8,
    "NaN": lambda: "NaN",
    "control characters": lambda: "before\x1b[31m\x07after",
    "nothing": lambda: "",
}


@task("value.raise")
async def raise_(ctx: Context, how: How) -> None:
    raise Told(RAISED[how.how]())


@task("value.progress")
async def progress(ctx: Context, how: How) -> str:
    await ctx.progress(1, 2, RAISED[how.how]())
    return "told"


@task("value.long")
async def long(ctx: Context, how: How) -> str:
    """A result of so many bytes as JSON, its quotes among them."""
    return "x" * (how.size - 2)


@task("value.long-effect")
async def long_effect(ctx: Context, how: How) -> str:
    async def make() -> str:
        return "x" * (how.size - 2)

    await ctx.effect("make", make)
    return "recorded"


def far_down(levels: int, size: int) -> None:
    if levels:
        far_down(levels - 1, size)
    raise Told("long " * (size // 5))


@task("value.long-error")
async def long_error(ctx: Context, how: How) -> None:
    far_down(500, how.size)


@task("value.until-fixed", timeout_seconds=60)
async def until_fixed(ctx: Context, how: How) -> str:
    """Fails for good until the file that it is given exists."""
    if not Path(how.how).exists():
        raise Told("not fixed yet")
    return "fixed"
