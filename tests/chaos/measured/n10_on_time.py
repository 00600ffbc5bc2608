"""N10: nothing starts early, little starts late, and the back-off is full jitter."""

from __future__ import annotations

import random

from tests.chaos.measured.figure import LONG, Figure, Measured, Sheet, quantile
from tests.chaos.measured.handlers import FAIL_ONCE, NOTHING, PLAIN
from tests.chaos.measured.scene import Scene
from tests.chaos.records import Finding

SCHEDULED, FAILING = (3_000, 1_000) if LONG else (300, 200)
DELAY_SECONDS = (0.5, 20.0) if LONG else (0.5, 4.0)
LATE_SECONDS = 0.25

LATENESS = """
SELECT o.job_id::text AS id, extract(epoch FROM o.started_at - j.run_at)::float8 AS late
FROM outcomes o JOIN jobs j ON j.id = o.job_id WHERE o.job_id = ANY($1::text[]::uuid[])
"""
WAITS = """
SELECT extract(epoch FROM o.started_at - a.ended_at)::float8 AS waited
FROM outcomes o JOIN attempts a ON a.job_id = o.job_id AND a.attempt = 1 WHERE o.job_id = ANY($1::text[]::uuid[])
"""


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """Jobs of a delay each, and beside them jobs that fail once."""
    scheduled = [
        job
        for _ in range(SCHEDULED)
        for job in await scene.submit(NOTHING, [PLAIN], delay_seconds=round(dice.uniform(*DELAY_SECONDS), 3))
    ]
    failing = await scene.submit(FAIL_ONCE, [PLAIN] * FAILING)
    await scene.all_ended()
    late = {row["id"]: row["late"] for row in await scene.fetch(LATENESS, scheduled)}
    base = scene.settings.backoff_base_seconds
    waits = sorted(row["waited"] for row in await scene.fetch(WAITS, failing))
    return Sheet(
        jobs=SCHEDULED + FAILING,
        figures=[
            Figure(f"lateness p99 of {len(late)}", quantile(list(late.values()), 0.99), LATE_SECONDS),
            Figure(f"longest back-off of {len(waits)}, base {base:g} s", waits[-1], base + LATE_SECONDS),
            *_spread([wait / base for wait in waits]),
        ],
        findings=[Finding("early", one, f"{-seconds:.3f} s early") for one, seconds in late.items() if seconds < 0],
    )


def _spread(shares: list[float]) -> list[Figure]:
    """Full jitter is even: three tenths of the waits, less some chance, are in the first and in the last three."""
    first = 100 * sum(share < 0.3 for share in shares) / len(shares)
    late = 100 * sum(share > 0.7 for share in shares) / len(shares)
    return [
        Figure("back-offs in the first 0.3 of the base", first, 12, "%", at_least=True),
        Figure("back-offs in the last 0.3 of the base", late, 12, "%", at_least=True),
    ]


RUN = Measured("N10", "schedules and back-off", measure)
