"""The query parameters of lists. What is not listed here is refused, so that a typo cannot widen a list."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from app.domain.errors import Refused
from app.domain.filters import DeadFilter, JobFilter
from app.domain.jsontext import token
from app.domain.request import read_instant
from app.domain.states import Reason, State
from app.usecases.read import LIMIT_DEFAULT, LIMIT_MAX

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}\z")]
Instant = Annotated[datetime, BeforeValidator(read_instant)]
Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{1,64}\z")]


class _List(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Name | None = None
    queue: Name | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT
    cursor: Annotated[str, StringConstraints(max_length=200)] | None = None


class JobQuery(_List):
    """`GET /v1/jobs`."""

    state: State | None = None

    def filters(self) -> JobFilter:
        return JobFilter(self.state, self.kind, self.queue, self.since, self.until)


class DeadQuery(_List):
    """`GET /v1/dead-letters`."""

    reason: Reason | None = None
    fingerprint: Fingerprint | None = None

    def filters(self) -> DeadFilter:
        return DeadFilter(self.kind, self.reason, self.queue, self.fingerprint, self.since, self.until)


JobQueryParams = Annotated[JobQuery, Query()]
DeadQueryParams = Annotated[DeadQuery, Query()]


async def refuse_repeated(request: Request) -> None:
    """Raises `Refused` 422 for a parameter given twice: taking one of them would answer another question."""
    times = Counter(name for name, _ in request.query_params.multi_items())
    errors = [
        {"pointer": token(name), "parameter": name, "detail": "is given twice"} for name in times if times[name] > 1
    ]
    if errors:
        raise Refused("invalid-request", 422, "A parameter of the request is not valid.", errors=errors)
