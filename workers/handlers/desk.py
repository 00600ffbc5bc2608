"""The help desk over HTTP: who a customer is, and where a result is filed.

The desk is outside too: what it answers is checked. Its failures go up as httpx raises them.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Literal, Self

import httpx
from pydantic import BaseModel

from workers.handlers.tickets import Filing, History

DEFAULT_URL = "http://127.0.0.1:8090"
TIMEOUT_SECONDS = 10.0


class PastTicket(BaseModel):
    outcome: Literal["solved", "open"]


class Customer(BaseModel):
    name: str
    plan: str
    tickets: list[PastTicket]


class Receipt(BaseModel):
    """The desk's word that something is filed."""

    filing_id: str


class Desk:
    """One connection to the desk, for the length of one job."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def from_environment(cls, environment: Mapping[str, str]) -> AsyncIterator[Self]:
        """At `OUTLAST_SINK_URL`."""
        url = environment.get("OUTLAST_SINK_URL", DEFAULT_URL)
        async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_SECONDS, verify=tls()) as client:
            yield cls(client)

    async def history(self, customer: str) -> History:
        """What is known of a customer. Raises what httpx raises."""
        answer = await self._client.get(f"/customers/{customer}")
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return History()
        known = Customer.model_validate_json(answer.raise_for_status().content)
        return History(
            known=True,
            name=known.name,
            plan=known.plan,
            tickets_before=len(known.tickets),
            tickets_open=sum(ticket.outcome == "open" for ticket in known.tickets),
        )

    async def file(self, filing: Filing, *, idempotency_key: str) -> Receipt:
        """Files a result; the desk keeps the first under a key. Raises what httpx raises."""
        answer = await self._client.post(
            "/filings", json=filing.model_dump(mode="json"), headers={"Idempotency-Key": idempotency_key}
        )
        return Receipt.model_validate_json(answer.raise_for_status().content)


@lru_cache(maxsize=1)
def tls() -> ssl.SSLContext:
    """Certificates are read once a process; httpx would read them for every client."""
    return ssl.create_default_context()
