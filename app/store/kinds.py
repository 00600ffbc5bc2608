"""The kinds that workers published. Once published, a kind is kept for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from app.domain import jsontext
from app.domain.jsontext import JsonObject
from app.domain.kinds import Defaults, Kind
from app.store.database import Database, Record


async def publish(db: Database, kinds: Sequence[Kind]) -> None:
    """Writes the kinds, the newest publication of a name wins.

    Raises `JsonRefused` for a schema that is not JSON we keep, and `DatabaseAway`.
    """
    await db.fetch(
        "publish_kinds",
        [kind.name for kind in kinds],
        [kind.version for kind in kinds],
        [jsontext.dump(kind.input_schema) for kind in kinds],
        [jsontext.dump(kind.output_schema) for kind in kinds],
        [jsontext.dump(asdict(kind.defaults)) for kind in kinds],
    )


async def read_all(db: Database) -> list[Kind]:
    """Every published kind, by name. Raises `DatabaseAway`."""
    return [_kind(row) for row in await db.fetch("read_kinds")]


def _kind(row: Record) -> Kind:
    return Kind(
        name=row["name"],
        version=row["version"],
        input_schema=_object(row["input_schema"]),
        output_schema=_object(row["output_schema"]),
        defaults=_defaults(_object(row["defaults"])),
    )


def _defaults(stored: Mapping[str, Any]) -> Defaults:
    return Defaults(
        timeout_seconds=float(stored["timeout_seconds"]),
        max_retries=stored["max_retries"],
        queue=stored["queue"],
        priority=stored["priority"],
    )


def _object(text: str) -> JsonObject:
    return cast("JsonObject", jsontext.read(text))
