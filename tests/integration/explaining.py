"""What a statement reads, by its explained plan, and whether that is more than a batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

from app.store.database import Session, sql
from tests.integration.piles import Case

GROWING = (
    *("jobs", "outcomes", "effects", "attempts"),
    *("outbox", "dead_letters", "idempotency_keys", "operator_actions", "workers"),
)
PARTITIONED = GROWING[:4]

# 50 rows with their indexes are some hundred blocks; each pile above has tens of thousands of entries.
BLOCKS_MAX = 4_000
ROWS_MAX = 1_500
SORTED_MAX = 1_500
PARTITIONS_MAX = 2


async def excesses(session: Session, case: Case, prepared: str) -> list[str]:
    """What the prepared statement reads too much of for the case; what it changes is rolled back."""
    change = session.transaction()
    await change.start()
    try:
        if case.of_the_leader:
            await session.fetch(sql("relay_plan"), "0")
        [plan] = json.loads(
            await session.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execution(prepared, case.args)}")
        )
        return list(judged(plan["Plan"], case))
    finally:
        await change.rollback()


def execution(prepared: str, args: Sequence[object]) -> str:
    """The statement that runs a prepared one."""
    return f"EXECUTE {prepared}" + (f" ({', '.join(map(literal, args))})" if args else "")


def judged(plan: dict[str, Any], case: Case) -> Iterator[str]:
    blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    if blocks > BLOCKS_MAX:
        yield f"{blocks} blocks"
    rows: Counter[str] = Counter()
    partitions: dict[str, set[str]] = {}
    for node in nodes(plan):
        table = table_of(node.get("Relation Name", ""))
        if node["Node Type"] == "Seq Scan" and table in GROWING:
            yield f"a sequential scan of {table}"
        if (
            node["Node Type"] in {"Sort", "Incremental Sort"}
            and node["Actual Rows"] * node["Actual Loops"] > SORTED_MAX
        ):
            yield f"a sort of {node['Actual Rows']} rows"
        if table in GROWING and node["Actual Loops"]:
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            rows[table] += read * node["Actual Loops"]
            partitions.setdefault(table, set()).add(node["Relation Name"])
    yield from (f"{count} rows of {table}" for table, count in rows.items() if count > ROWS_MAX)
    if case.pruned:
        yield from (
            f"{len(parts)} partitions of {table}"
            for table, parts in partitions.items()
            if table in PARTITIONED and len(parts) > PARTITIONS_MAX
        )


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def table_of(relation: str) -> str:
    """The table that a relation is, or is a partition of."""
    return next((table for table in PARTITIONED if relation.startswith(f"{table}_")), relation)


def literal(value: object) -> str:
    """A value as SQL text: EXECUTE takes no parameters."""
    if value is None:
        return "NULL"
    return "'" + text_of(value).replace("'", "''") + "'"


def text_of(value: object) -> str:
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return "{" + ",".join("NULL" if item is None else quoted(text_of(item)) for item in items) + "}"
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
