"""What a running handler may ask of the lease it runs under."""

from __future__ import annotations

from typing import Protocol

from app.domain.leased import LeasedJob


class RunLease(Protocol):
    """One attempt's hold on its job, as `workers.executor` and `workers.effects` see it.

    Whoever keeps the lease ends a run from outside by setting `lost` or `releasing` and then calling
    `Attempt.interrupt`.
    """

    @property
    def job(self) -> LeasedJob: ...

    @property
    def lost(self) -> bool:
        """The job is no longer ours: cancelled, rescued, or silent for a lease."""
        ...

    @property
    def releasing(self) -> bool:
        """The job is to be given back: the worker shuts down."""
        ...

    async def may_call(self) -> None:
        """Returns once a heartbeat is fresh enough for an outside call to begin. Raises `LeaseLost`."""
        ...

    def may_call_now(self) -> bool:
        """Whether one may begin this instant; may be asked from any thread."""
        ...

    async def progress(self, json_text: str) -> None:
        """Shows `{"done", "total", "message"}`. Best effort; raises nothing."""
        ...
