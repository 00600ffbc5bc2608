"""Everything the database holds about jobs, read in one snapshot, and what changed between two of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.domain.states import Home, State
from app.store.database import Connection

COUNTERS = {"attempt": "a", "retries": "r", "crashes": "c", "releases": "l"}

EVERYTHING = """
SELECT j.id, to_json(j)::text AS job,
  json_build_object(
    'outbox', (SELECT to_json(t) FROM outbox t WHERE t.job_id = j.id),
    'leases', (SELECT to_json(t) FROM leases t WHERE t.job_id = j.id),
    'dead_letters', (SELECT to_json(t) FROM dead_letters t WHERE t.job_id = j.id),
    'outcomes', (SELECT to_json(t) FROM outcomes t WHERE t.job_id = j.id))::text AS homes,
  json_build_array(
    (SELECT coalesce(json_agg(to_json(t) ORDER BY attempt), '[]') FROM attempts t WHERE t.job_id = j.id),
    (SELECT coalesce(json_object_agg(key, to_json(t)), '{}') FROM effects t WHERE t.job_id = j.id),
    (SELECT coalesce(json_agg(to_json(t) ORDER BY t.id), '[]') FROM operator_actions t WHERE t.job_id = j.id),
    (SELECT coalesce(json_agg(digest), '[]') FROM idempotency_keys t WHERE t.job_id = j.id),
    (SELECT coalesce(json_agg(replay_id ORDER BY replay_id), '[]') FROM replay_items t WHERE t.job_id = j.id)
  )::text AS rest
FROM jobs j
WHERE $1::uuid[] IS NULL OR j.id = ANY($1)
"""


@dataclass(frozen=True, slots=True)
class OnRecord:
    """All rows of one job. `home` is the one table it lives in, `row` its row there."""

    job: dict[str, Any]
    home: Home
    row: dict[str, Any]
    attempts: list[dict[str, Any]]
    effects: dict[str, dict[str, Any]]
    actions: list[dict[str, Any]]
    keys: list[str]
    replays: list[str]

    @property
    def state(self) -> State:
        """As the columns say it, whatever time it is: a deferred row waits until it is promoted."""
        match self.home:
            case Home.OUTBOX if self.row["deferred"]:
                return State.RETRYING if self.row["attempt"] else State.SCHEDULED
            case Home.OUTBOX:
                return State.QUEUED
            case Home.LEASES:
                return State.RUNNING
            case Home.DEAD_LETTERS:
                return State.DEAD
            case Home.OUTCOMES:
                return State(self.row["state"])

    @property
    def ends(self) -> list[str]:
        return [attempt["end"] for attempt in self.attempts]


async def on_record(connection: Connection, ids: Sequence[UUID] | None = None) -> dict[UUID, OnRecord]:
    """The jobs (all of them without `ids`), each with exactly one home; anything else fails."""
    rows = await connection.fetch(EVERYTHING, ids)
    return {row["id"]: _one(row["job"], row["homes"], row["rest"]) for row in rows}


def _one(job: str, homes: str, rest: str) -> OnRecord:
    owned: dict[str, dict[str, Any]] = {name: row for name, row in json.loads(homes).items() if row is not None}
    assert len(owned) == 1, f"a job with {len(owned)} homes: {owned}"
    [(home, row)] = owned.items()
    return OnRecord(json.loads(job), Home(home), row, *json.loads(rest))


def change(before: OnRecord, after: OnRecord) -> str:
    """What happened to a job, in words: its new state, counters that moved, rows that were added.

    `queued c+1 solo end=lost` is a rescue. Empty when no byte of any row has changed.
    """
    if before == after:
        return ""
    words = [] if before.home is after.home and before.state is after.state else [after.state.value]
    words += [after.row["reason"]] if after.row.get("reason") not in {None, before.row.get("reason")} else []
    words += [
        f"{letter}{after.row[name] - before.row[name]:+}"
        for name, letter in COUNTERS.items()
        if after.row[name] != before.row[name]
    ]
    words += ["solo"] if after.row.get("solo") and not before.row.get("solo") else []
    words += ["progress"] if after.row.get("progress") and not before.row.get("progress") else []
    words += [f"end={end}" for end in after.ends[len(before.ends) :]]
    words += [word for key in sorted(after.effects) for word in _effect_change(key, before, after)]
    words += [f"by={action['action']}" for action in after.actions[len(before.actions) :]]
    return " ".join(words) or "touched"


def _effect_change(key: str, before: OnRecord, after: OnRecord) -> list[str]:
    was, now = before.effects.get(key), after.effects[key]
    if was is None or was["state"] != now["state"]:
        return [f"{key}={now['state']}"]
    return [f"{key}+{now['attempt'] - was['attempt']}"] if was["attempt"] != now["attempt"] else []
