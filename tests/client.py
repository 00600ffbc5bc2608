"""A caller of the HTTP API, and what handlers of tests wrote down."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.processes import wait_until

FINAL = ("done", "cancelled", "dead")


class Client:
    """Talks to one API; every answer that is no 2xx is an `AssertionError`."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=10, verify=False)  # no certificates to load

    def submit(self, kind: str, value: Any, *, key: str | None = None, **fields: Any) -> str:
        """The id of a new job."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._ok(self.http.post("/v1/jobs", json={"kind": kind, "input": value, **fields}, headers=headers))[
            "id"
        ]

    def submit_all(self, kind: str, values: list[Any], **fields: Any) -> list[str]:
        """The ids of new jobs, in batches."""
        ids: list[str] = []
        for start in range(0, len(values), 1000):
            jobs = [{"kind": kind, "input": value, **fields} for value in values[start : start + 1000]]
            answer = self._ok(self.http.post("/v1/jobs/batch", json={"jobs": jobs}))
            ids += [item["job"]["id"] for item in answer["data"]]
        return ids

    def job(self, job_id: str) -> dict[str, Any]:
        return self._ok(self.http.get(f"/v1/jobs/{job_id}"))

    def timeline(self, job_id: str) -> dict[str, Any]:
        return self._ok(self.http.get(f"/v1/jobs/{job_id}/timeline"))

    def effects(self, job_id: str) -> list[dict[str, Any]]:
        return self._ok(self.http.get(f"/v1/jobs/{job_id}/effects"))["data"]

    def cancel(self, job_id: str) -> dict[str, Any]:
        return self._ok(self.http.post(f"/v1/jobs/{job_id}/cancel", json={"reason": "a test asks for it"}))

    def wait_for(self, job_id: str, *states: str, seconds: float = 20) -> dict[str, Any]:
        """The job once it is in one of the states; fails at once when it ends in another."""

        def reached() -> dict[str, Any] | None:
            job = self.job(job_id)
            if job["state"] in states:
                return job
            assert job["state"] not in FINAL, f"{job['state']}: {job['reason']} {job['error']}"
            return None

        found = wait_until(reached, seconds, what=f"job {job_id} in {states}")
        assert found is not None
        return found

    def _ok(self, response: httpx.Response) -> Any:
        assert response.is_success, f"{response.status_code} {response.text[:500]}"
        return response.json()


@dataclass(frozen=True)
class Journal:
    """The lines handlers wrote, each split into words."""

    entries: list[list[str]]

    def lines(self, verb: str) -> list[list[str]]:
        """The words after `verb`."""
        return [entry[1:] for entry in self.entries if entry[0] == verb]

    def count(self, verb: str) -> int:
        return len(self.lines(verb))


def journal_of(path: Path) -> Journal:
    return Journal([line.split() for line in path.read_text().splitlines()] if path.exists() else [])
