"""What callers see: the API and the help desk, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from examples.demo.scenario import Ticket

KIND = "ticket.triage"
TIMEOUT_SECONDS = 90.0
PAGE = 200

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a submit was answered. `replayed`: the key was known, this is the job it made."""

    job_id: str
    status: int
    replayed: bool


class Caller:
    """Raises `httpx.HTTPStatusError` for every answer that is not a success."""

    def __init__(self, api_url: str, desk_url: str) -> None:
        self._api = httpx.Client(base_url=api_url, timeout=TIMEOUT_SECONDS)
        self._desk = httpx.Client(base_url=desk_url, timeout=TIMEOUT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._api.close()
        self._desk.close()

    def submit(self, ticket: Ticket) -> Answer:
        """One job for one ticket, under the ticket's key."""
        body = {"kind": KIND, "input": ticket.input, "metadata": {"ticket": ticket.id}}
        answer = self._api.post("/v1/jobs", json=body, headers={"Idempotency-Key": ticket.key}).raise_for_status()
        return Answer(answer.json()["id"], answer.status_code, answer.headers.get("Idempotent-Replayed") == "true")

    def jobs(self) -> list[Document]:
        """Every job, newest first, without inputs and results."""
        found: list[Document] = []
        cursor: str | None = None
        while True:
            page = self._get("/v1/jobs", {"limit": PAGE} | ({"cursor": cursor} if cursor else {}))
            found += page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def job(self, job_id: str) -> Document:
        return self._get(f"/v1/jobs/{job_id}")

    def timeline(self, job_id: str) -> Document:
        return self._get(f"/v1/jobs/{job_id}/timeline")

    def effects(self, job_id: str) -> list[Document]:
        return self._get(f"/v1/jobs/{job_id}/effects")["data"]

    def desk_counts(self) -> Document:
        """What the help desk counted by itself."""
        return self._desk.get("/counts").raise_for_status().json()

    def _get(self, path: str, parameters: Mapping[str, str | int] | None = None) -> Document:
        return self._api.get(path, params=parameters).raise_for_status().json()
