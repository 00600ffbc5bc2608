"""Submitting a job: on record, with its key and its place in the outbox, before the caller is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from app.coalesce import Coalescer
from app.domain import jsontext
from app.domain.errors import DatabaseAway, Refused, Unstorable
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


class Submitter:
    """Submits for many callers at once: those that wait at the same time share a transaction."""

    def __init__(self, db: Database, catalog: Catalog, settings: Settings) -> None:
        self._db = db
        self._catalog = catalog
        self._horizon_days = settings.max_horizon_days
        self._waker = Waker(db)
        self._coalescer: Coalescer[NewJob, Inserted | KeyTaken] = Coalescer(self._flush, batch_max=BATCH_MAX)
        self._waiting_bytes = 0

    async def submit(
        self, request: JobRequest, *, key: str | None = None, tenant: str = DEFAULT_TENANT, pointer: str = ""
    ) -> Submitted:
        """Puts the job on record, or finds the one that this key made before.

        `pointer` is where the request stands in its document. Raises `Refused` (422 `unknown-kind`,
        `invalid-input`, `invalid-request`; 409 `idempotency-key-reuse`; 503 `overloaded`) and
        `DatabaseAway`, after which only a key tells whether the job was made.
        """
        digest = None if key is None else key_digest(tenant, key)
        try:
            new = await self._resolve(request, digest, tenant, pointer)
        except Refused:
            # An honest repetition gets its job, whatever has become of the kind's schema meanwhile.
            taken = await self._taken(digest)
            if taken is None:
                raise
            return await self._replay(request, taken, pointer)
        answer = await self._insert_with_others(new)
        if isinstance(answer, KeyTaken):
            return await self._replay(request, answer, pointer)
        return Submitted(_view(new, answer), replayed=False)

    async def drain(self) -> None:
        """Returns once everything submitted so far is answered and the workers have been told."""
        await self._coalescer.drain()
        await self._waker.drain()

    async def _resolve(self, request: JobRequest, digest: UUID | None, tenant: str, pointer: str) -> NewJob:
        """The job that the request asks for, with the defaults of its kind."""
        kind = await self._catalog.accept(request.kind, request.input, pointer=pointer)
        refuse_beyond_horizon(request, datetime.now(UTC), self._horizon_days, pointer=pointer)
        defaults = kind.defaults
        return NewJob(
            tenant=tenant,
            kind=kind.name,
            queue=request.queue or defaults.queue or DEFAULT_QUEUE,
            priority=_first(request.priority, defaults.priority, DEFAULT_PRIORITY),
            input=jsontext.dump(request.input),
            metadata=None if request.metadata is None else jsontext.dump(request.metadata),
            max_retries=_first(request.max_retries, defaults.max_retries, 0),
            timeout_seconds=request.timeout_seconds or defaults.timeout_seconds,
            run_at=request.run_at,
            delay_seconds=request.delay_seconds,
            deadline=request.deadline,
            key=digest,
            request=None if digest is None else request_digest(request),
        )

    async def _insert_with_others(self, new: NewJob) -> Inserted | KeyTaken:
        size = JOB_BYTES + len(new.input)
        if self._waiting_bytes + size > WAITING_BYTES_MAX:
            raise Refused("overloaded", 503, "Too much is waiting to be stored; try again.", retry_after=1)
        self._waiting_bytes += size
        try:
            return await self._coalescer.submit(new)
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

    async def _taken(self, digest: UUID | None) -> KeyTaken | None:
        return None if digest is None else (await jobs.keys_taken(self._db, [digest])).get(digest)

    async def _replay(self, request: JobRequest, taken: KeyTaken, pointer: str) -> Submitted:
        if taken.request != request_digest(request):
            stored = await jobs.stored_request(self._db, taken.job_id)
            places = [] if stored is None else differences(request, stored)
            if places:
                raise _reused(taken.job_id, [pointer + place for place in places])
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
