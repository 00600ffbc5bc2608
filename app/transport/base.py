"""What carries job ids from the relay to workers, and what each side may ask of it.

A transport is a hint and a doorbell. It may lose, repeat, shuffle or invent entries at any moment and no job is
lost by it: the relay publishes again what still waits in PostgreSQL, and a claim there decides who runs what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID


class Delivery(NamedTuple):
    """One entry in the hands of a consumer. `receipt` names the entry at the broker.

    `attempt` is the attempt number of the outbox row that was published; a claim makes it one more.
    """

    queue: str
    job_id: UUID
    attempt: int
    receipt: str


def place(receipt: str) -> tuple[int, int]:
    """Receipts of one queue compare by this in the order of publishing. They look like `<ms>-<sequence>`."""
    milliseconds, _, sequence = receipt.partition("-")
    return int(milliseconds), int(sequence)


@dataclass(frozen=True, slots=True)
class Published:
    """What became of one `publish`.

    `receipts` belong to the first `len(receipts)` of the rows given, in order; None: the broker did not take that one
    row. `length` counts the entries the
    queue holds now, read or not; `oldest` is the receipt of the first of them. `changed`: the queue is not as this
    publisher left it (emptied, restored from an old copy, written to by another relay or by a stranger, or a reply
    was lost); nothing was published by this call, and `read_all` must come before the next.
    `refused` is the broker's own word for not taking more, such as `OOM` or `READONLY`.
    """

    receipts: Sequence[str | None]
    length: int
    oldest: str | None
    changed: bool = False
    refused: str | None = None


class EntryState(StrEnum):
    """Where an entry stands at the broker."""

    UNREAD = "unread"
    PENDING = "pending"
    UNOWNED = "unowned"  # delivered once, pending for nobody: it would stay for ever


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as an auditor sees it. One that is not ours has no `attempt`, and as `job_id` any id that it holds.

    `age_seconds` counts from its publishing by the broker's clock; `consumer`, `idle_seconds` and `deliveries`
    belong to pending entries.
    """

    queue: str
    receipt: str
    state: EntryState
    job_id: UUID | None
    attempt: int | None
    age_seconds: float
    consumer: str | None = None
    idle_seconds: float | None = None
    deliveries: int = 0


class Subscriber(Protocol):
    """The consumer side, one per worker process. Every method may raise `BrokerAway`."""

    async def read(self, count: int, block_seconds: float) -> list[Delivery]:
        """Up to `count` deliveries that nobody had before; waits at most `block_seconds` for the first.

        Safe to cancel: what the broker had already handed over is returned by the next call.
        """
        ...

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """Removes those entries that are still mine; others are left to whoever holds them now."""
        ...

    async def renew(self, deliveries: Sequence[Delivery]) -> None:
        """Resets the idle time of those entries that are still mine."""
        ...

    async def reclaim(self, count: int, min_idle_seconds: float) -> list[Delivery]:
        """Up to `count` deliveries, of anyone, that have been idle for so long; they are mine now.

        Goes on where the last call stopped, so an empty answer is not the end of the list.
        """
        ...

    async def close(self) -> None:
        """Closes the connections; does not raise."""
        ...


class Publisher(Protocol):
    """The relay's side and the auditor's. Every method but `close` may raise `BrokerAway`."""

    async def publish(self, queue: str, rows: Sequence[tuple[UUID, int]], window: int) -> Published:
        """Publishes (job id, attempt) rows in order until the queue holds `window` entries; one round trip.

        It does so only while nothing but this publisher has added to the queue since its last `read_all` or
        `publish`, so two relays that both believe to lead, or a command that arrives late, repeat nothing.
        With no rows it only looks.
        """
        ...

    async def missing(self, queue: str, receipts: Sequence[str]) -> list[str]:
        """Those of `receipts` that the queue no longer holds."""
        ...

    async def read_all(self, queue: str, limit: int) -> list[Delivery]:
        """The entries the queue holds, oldest first, up to `limit`; takes nothing. Skips what is not ours."""
        ...

    async def queues(self) -> list[str]:
        """The names of all queues the broker knows, sorted."""
        ...

    async def consumers(self, queue: str) -> list[UUID]:
        """The worker ids that the broker remembers as consumers of a queue."""
        ...

    async def clear_consumer(self, queue: str, worker_id: UUID) -> list[str]:
        """Removes what is pending for a worker that is gone, then the consumer itself; the receipts removed."""
        ...

    async def sweep_unowned(self, queue: str) -> list[str]:
        """Deletes entries that were delivered and are pending for nobody; their receipts."""
        ...

    async def drop_unused(self, queue: str) -> bool:
        """Forgets a queue that holds nothing and has no consumers; whether it did."""
        ...

    async def inspect(self, queue: str, limit: int) -> list[Entry]:
        """The entries of a queue with where they stand, oldest first, up to `limit`."""
        ...

    async def remove(self, queue: str, entries: Sequence[Entry]) -> int:
        """Removes those entries that are in nobody else's hands than when they were seen; how many."""
        ...

    async def close(self) -> None:
        """Closes the connections; does not raise."""
        ...
