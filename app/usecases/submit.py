"""Submitting a job: on record, with its key and its place in the outbox, before the caller is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from app.coalesce import Coalescer
from app.domain import jsontext
from app.domain.errors import DatabaseAway, OutlastError, Refused, Unstorable
from app.domain.kinds import DEFAULT_PRIORITY, DEFAULT_QUEUE
from app.domain.request import JobRequest, differences, key_digest, refuse_beyond_horizon, request_digest
from app.domain.states import State
from app.domain.views import JobView
from app.failpoints import Point, reach
from app.settings import Settings
from app.store import jobs
from app.store.database import Database
from app.store.jobs import Inserted, KeyTaken, NewJob
from app.usecases import read
from app.usecases.kinds import Catalog
from app.usecases.wake import Waker

DEFAULT_TENANT = "default"
BATCH_MAX = 1_000
WAITING_BYTES_MAX = 128 * 1_048_576
JOB_BYTES = 2_048

Answer = Inserted | KeyTaken | Exception


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job as it is now; `replayed` when an earlier request with the same key made it."""

    job: JobView
    replayed: bool


class Order(NamedTuple):
    """A request and its key; `pointer` is where the request stands in its document."""

    request: JobRequest
    key: str | None = None
    pointer: str = ""


@dataclass(slots=True)
class _Place:
    """An order on its way: what it asks for with the defaults of its kind, and what came of it."""

    order: Order
    digest: UUID | None
    new: NewJob | None = None
    answer: Answer | Submitted | None = None

    def outcome(self) -> Submitted | OutlastError:
        if self.new is not None and isinstance(self.answer, Inserted):
            return Submitted(_view(self.new, self.answer), replayed=False)
        if isinstance(self.answer, Submitted | OutlastError):
            return self.answer
        raise self.answer if isinstance(self.answer, Exception) else AssertionError("an order without an answer")


class Submitter:
    """Submits for many callers at once: those that wait at the same time share a transaction."""

    def __init__(self, db: Database, catalog: Catalog, settings: Settings) -> None:
        self._db = db
        self._catalog = catalog
        self._horizon_days = settings.max_horizon_days
        self._waker = Waker(db)
        self._coalescer: Coalescer[NewJob, Inserted | KeyTaken] = Coalescer(self._flush, batch_max=BATCH_MAX)
        self._waiting_bytes = 0

    async def submit(self, request: JobRequest, *, key: str | None = None, tenant: str = DEFAULT_TENANT) -> Submitted:
        """Puts the job on record, or finds the one that this key made before.

        Raises `Refused` (422 `unknown-kind`, `invalid-input`, `invalid-request`; 409 `idempotency-key-reuse`;
        503 `overloaded`) and `DatabaseAway`, after which only a key tells whether the job was made.
        """
        [outcome] = await self.submit_all([Order(request, key)], tenant=tenant)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def submit_all(
        self, orders: Sequence[Order], *, tenant: str = DEFAULT_TENANT
    ) -> list[Submitted | OutlastError]:
        """As `submit`, each for itself: what became of each, in their order."""
        places = await self._resolve_all(orders, tenant)
        inserted = iter(await self._insert_with_others([one.new for one in places if one.new is not None]))
        for one in places:
            if one.new is not None:
                one.answer = next(inserted)
        if not all(isinstance(one.answer, Inserted) for one in places):
            await self._replay_all(places)
        return [one.outcome() for one in places]

    async def drain(self) -> None:
        """Returns once everything submitted so far is answered and the workers have been told."""
        await self._coalescer.drain()
        await self._waker.drain()

    async def _resolve_all(self, orders: Sequence[Order], tenant: str) -> list[_Place]:
        asked_at = asyncio.get_running_loop().time()
        places = [_Place(order, None if order.key is None else key_digest(tenant, order.key)) for order in orders]
        for one in places:
            try:
                one.new = await self._resolve(one, tenant, asked_at)
            except Refused as refused:
                one.answer = refused
            except DatabaseAway as away:
                for other in places:
                    other.new, other.answer = None, away
                break
        return places

    async def _resolve(self, place: _Place, tenant: str, asked_at: float) -> NewJob:
        """The job that the request asks for, with the defaults of its kind."""
        request, _, pointer = place.order
        kind = await self._catalog.accept(request.kind, request.input, asked_at=asked_at, pointer=pointer)
        refuse_beyond_horizon(request, datetime.now(UTC), self._horizon_days, pointer=pointer)
        defaults = kind.defaults
        return NewJob(
            tenant=tenant,
            kind=kind.name,
            queue=request.queue or defaults.queue or DEFAULT_QUEUE,
            priority=_first(request.priority, defaults.priority, DEFAULT_PRIORITY),
            input=jsontext.dump_checked(request.input),
            metadata=None if request.metadata is None else jsontext.dump_checked(request.metadata),
            max_retries=_first(request.max_retries, defaults.max_retries, 0),
            timeout_seconds=request.timeout_seconds or defaults.timeout_seconds,
            run_at=request.run_at,
            delay_seconds=request.delay_seconds,
            deadline=request.deadline,
            key=place.digest,
            request=None if place.digest is None else request_digest(request),
        )

    async def _insert_with_others(self, new: Sequence[NewJob]) -> Sequence[Answer]:
        size = sum([JOB_BYTES + len(one.input) for one in new])
        if self._waiting_bytes + size > WAITING_BYTES_MAX:
            full = Refused("overloaded", 503, "Too much is waiting to be stored; try again.", retry_after=1)
            return [full] * len(new)
        self._waiting_bytes += size
        try:
            return await self._coalescer.submit_all(new) if new else []
        finally:
            self._waiting_bytes -= size

    async def _flush(self, batch: Sequence[NewJob]) -> Sequence[Answer]:
        try:
            return await self._insert(batch)
        except Unstorable:
            return [await self._insert_alone(new) for new in batch]

    async def _insert_alone(self, new: NewJob) -> Answer:
        try:
            [answer] = await self._insert([new])
        except Unstorable:
            return Refused("invalid-request", 422, "The request holds a value that cannot be stored.")
        except DatabaseAway as error:
            return error
        return answer

    async def _insert(self, batch: Sequence[NewJob]) -> list[Answer]:
        reach(Point.SUBMIT_BEFORE_COMMIT)
        inserted = await jobs.insert(self._db, batch)
        reach(Point.SUBMIT_AFTER_COMMIT)
        pairs = list(zip(batch, inserted, strict=True))
        self._waker.wake({new.queue for new, answer in pairs if answer is not None and not answer.deferred})
        owners = await self._owners([new.key for new, answer in pairs if answer is None and new.key is not None])
        return [answer if answer is not None else _owner(owners, new.key) for new, answer in pairs]

    async def _owners(self, keys: Sequence[UUID]) -> dict[UUID, KeyTaken] | DatabaseAway:
        """Whose these keys are. What was inserted is committed, so a failure here is the losers' alone."""
        try:
            return await jobs.keys_taken(self._db, keys) if keys else {}
        except DatabaseAway as error:
            return error

    async def _replay_all(self, places: Sequence[_Place]) -> None:
        """An honest repetition gets its job, whatever has become of the kind's schema meanwhile."""
        refused = [one for one in places if one.new is None and isinstance(one.answer, Refused)]
        owners = await self._owners([one.digest for one in refused if one.digest is not None])
        for one in refused:
            if one.digest is not None:
                one.answer = owners if isinstance(owners, DatabaseAway) else owners.get(one.digest, one.answer)
        await asyncio.gather(*[self._replay(one, one.answer) for one in places if isinstance(one.answer, KeyTaken)])

    async def _replay(self, place: _Place, taken: KeyTaken) -> None:
        try:
            place.answer = await self._replayed(place.order, taken)
        except (Refused, DatabaseAway) as error:
            place.answer = error

    async def _replayed(self, order: Order, taken: KeyTaken) -> Submitted:
        if taken.request != request_digest(order.request):
            stored = await jobs.stored_request(self._db, taken.job_id)
            found = [] if stored is None else differences(order.request, stored)
            if found:
                raise _reused(taken.job_id, [order.pointer + place for place in found])
        return Submitted(await read.job(self._db, taken.job_id), replayed=True)


def _first(asked: int | None, default: int | None, otherwise: int) -> int:
    if asked is not None:
        return asked
    return otherwise if default is None else default


def _owner(owners: dict[UUID, KeyTaken] | DatabaseAway, key: UUID | None) -> KeyTaken | Exception:
    if isinstance(owners, DatabaseAway):
        return owners
    gone = Refused("idempotency-key-moving", 503, "The key's job was just removed; try again.", retry_after=1)
    return gone if key is None else owners.get(key, gone)


def _reused(job_id: UUID, places: Sequence[str]) -> Refused:
    return Refused(
        "idempotency-key-reuse",
        409,
        "The idempotency key belongs to another request.",
        errors=[{"pointer": place, "detail": "differs from the request that made the job"} for place in places],
        extra={"job_id": str(job_id)},
    )


def _view(new: NewJob, inserted: Inserted) -> JobView:
    return JobView(
        id=inserted.id,
        kind=new.kind,
        queue=new.queue,
        priority=new.priority,
        state=State.SCHEDULED if inserted.deferred else State.QUEUED,
        reason=None,
        attempt=0,
        retries=0,
        max_retries=new.max_retries,
        crashes=0,
        releases=0,
        timeout_seconds=new.timeout_seconds,
        metadata=new.metadata,
        error=None,
        progress=None,
        fingerprint=None,
        created_at=inserted.created_at,
        due_at=inserted.due_at,
        deadline=new.deadline,
        started_at=None,
        finished_at=None,
        input=new.input,
    )
