"""Redis says what is not so: entries again and again, out of order, of strangers, of no sense, or fewer than it got."""

from __future__ import annotations

import random
from uuid import uuid4

from app.transport import keys
from tests.chaos.faults.redis_states import commands
from tests.chaos.faults.scene import Scene, fault

TIMES = 3
ENDED = "SELECT job_id::text, attempt FROM outcomes ORDER BY job_id DESC LIMIT 20"
WAITING = "SELECT job_id::text, attempt FROM outbox ORDER BY job_id LIMIT 50"
LEASED = "SELECT job_id::text, attempt FROM leases ORDER BY job_id LIMIT 20"

Fields = tuple[str | bytes, ...]

NONSENSE: tuple[Fields, ...] = (
    ("x", "y"),
    ("job", "none of your business", "attempt", "0"),
    ("job", "", "attempt", ""),
    ("job", b"\xff\xfe\x00", "attempt", b"\xff"),
    ("attempt", "1"),
    ("job", str(uuid4()), "attempt", "-1"),
    ("job", str(uuid4()), "attempt", "9" * 400),
)


@fault("Redis lied to")
async def lie(scene: Scene, draw: float) -> str | None:
    """Writes three times, shuffled, what is true, what was and what never was; then cuts the oldest tenth off."""
    dice, stream, server = random.Random(draw), keys.stream("default"), scene.world.redis
    lies = [fields for fields in (*NONSENSE, *await _about(scene)) for _ in range(TIMES)]
    dice.shuffle(lies)
    told = [("XADD", stream, "*", *fields) for fields in lies]
    *_, trimmed = commands(server, [*told, ("XTRIM", stream, "MAXLEN", "=", len(lies) * 9 // 10)])
    return f"{len(lies)} entries, {trimmed} trimmed"


async def _about(scene: Scene) -> list[Fields]:
    """Jobs in every state, under the attempts they are in and others, and jobs that nobody knows."""
    rows = [row for statement in (ENDED, WAITING, LEASED) for row in await scene.world.fetch(statement)]
    known = [(row["job_id"], row["attempt"] + more) for row in rows for more in (0, 1, 1_000)]
    strangers = [(str(uuid4()), 0) for _ in range(10)]
    return [("job", job_id, "attempt", str(attempt)) for job_id, attempt in (*known, *strangers)]
