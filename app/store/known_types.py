"""Connections that know the server's own types.

asyncpg asks the catalogue of the server about the arrays of a statement, on each connection anew: two round trips and
some 7 ms of a fresh session, where the first statement costs 1.5 without. Types that come with PostgreSQL
have the same oids on every server, so one answer does for a process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import asyncpg

FIRST_OID_OF_USERS = 16_384

_known: dict[int, asyncpg.Record] = {}


@dataclass(frozen=True, slots=True)
class _NotAsked:
    """In place of the statement that asked; with a name, as one that has taken no other's place in the session."""

    name: str = "known"


class KnowingConnection(asyncpg.Connection):
    """Asks about a type that comes with PostgreSQL once a process."""

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> tuple[Any, Any]:
        oids = set(typeoids)
        if oids <= _known.keys():
            return list(_known.values()), _NotAsked()
        asked = super()._introspect_types(oids, timeout)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        types, statement = await cast("Awaitable[tuple[list[asyncpg.Record], Any]]", asked)
        if all(one["oid"] < FIRST_OID_OF_USERS for one in types):
            _known.update((one["oid"], one) for one in types)
        return types, statement
