"""Runs one attempt of a job and says how it ended."""

from __future__ import annotations

from collections.abc import Callable

from app.domain.outcomes import Outcome
from app.settings import Settings
from workers.ledger import Ledger
from workers.registry import Task
from workers.run_lease import RunLease


class Executor:
    """Runs handlers, one per process.

    `random` gives numbers in [0, 1) for the jitter of retries. `stragglers` counts runs that were
    given up (timed out, lost) but whose code still runs: each keeps the slot of its job until it ends,
    so a consumer claims no more than `concurrency - running - stragglers` jobs.
    """

    def __init__(self, settings: Settings, ledger: Ledger, *, random: Callable[[], float]) -> None: ...

    @property
    def stragglers(self) -> int: ...

    async def execute(self, task: Task, lease: RunLease) -> Outcome:
        """Runs `lease.job` with `task` and returns how it ended; it never raises what the handler raised.

        Cancelled with `lease.lost` set it returns `Gone`, with `lease.releasing` set `Release`;
        cancelled with neither it raises `CancelledError`.
        """
        ...
