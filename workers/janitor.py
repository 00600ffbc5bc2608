"""What nobody waits for: partitions of the weeks to come, rows of processes long ended, kinds nobody knows."""

from __future__ import annotations

from dataclasses import dataclass

from app.settings import Settings
from app.store.relay import OutboxUpkeep
from app.telemetry import log

WEEKS_AHEAD = 2
BATCH_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Cleaned:
    """How much one run did."""

    partitions_made: int
    workers_pruned: int
    kinds_unknown: int


class Janitor:
    """Any number of janitors may run at once."""

    def __init__(self, settings: Settings, upkeep: OutboxUpkeep) -> None:
        self._settings = settings
        self._upkeep = upkeep

    async def run_once(self) -> Cleaned:
        """Does what is to be done now. Raises `DatabaseAway`."""
        cleaned = Cleaned(
            await self._upkeep.make_partitions(WEEKS_AHEAD),
            # The timeline of a dead letter names the process of each attempt for as long as it is kept.
            await self._upkeep.prune_workers(max(self._settings.retention_days, self._settings.dead_retention_days)),
            await self._upkeep.bury_unknown(self._settings.unknown_kind_days, BATCH_MAX),
        )
        if cleaned != Cleaned(0, 0, 0):
            log.info(
                "cleaned",
                partitions_made=cleaned.partitions_made,
                workers_pruned=cleaned.workers_pruned,
                kinds_unknown=cleaned.kinds_unknown,
            )
        return cleaned
