"""What became of the errands of some callers: the record of PostgreSQL beside the count of the help desk."""

from __future__ import annotations

from dataclasses import dataclass

from tests.containers.callers import Callers
from tests.containers.docker_cli import until

DONE_SECONDS = 90.0
# A job and how often its effects were called beyond once each, by the record.
ROWS = """
SELECT j.id::text AS id, j.input->>'name' AS name, o.state, o.attempt, o.retries, o.crashes,
  (SELECT coalesce(sum(e.calls - 1), 0) FROM effects e WHERE e.job_id = j.id) AS again,
  (SELECT count(*) FROM effects e WHERE e.job_id = j.id AND e.state = 'recorded') AS effects
FROM jobs j LEFT JOIN outcomes o ON o.job_id = j.id
WHERE starts_with(j.input->>'name', $1)
"""
COUNT = """
SELECT count(*) FROM jobs j JOIN outcomes o ON o.job_id = j.id
WHERE starts_with(j.input->>'name', $1) AND o.state = 'done'
"""


@dataclass(frozen=True)
class Books:
    """Sums over jobs. `again` and `repeated` are calls beyond an effect's first: on record, and at the desk."""

    jobs: int
    attempts: int
    retries: int
    crashes: int
    again: int
    repeated: int

    def nothing_charged(self) -> None:
        """No crash, no retry, and no effect was called twice."""
        assert (self.crashes, self.retries, self.again, self.repeated) == (0, 0, 0, 0), self


def close(callers: Callers, *, seconds: float = DONE_SECONDS) -> Books:
    """Waits until every errand that was answered is done, and checks what must hold whatever was done to the crew:

    nobody gave up; there is one job for each name, the one that was answered; each effect is on record and was filed
    under one key; a call that was repeated says so on record and belongs to a job with a crash; the audit is clean.
    """
    assert callers.failed == []
    crew, prefix = callers.crew, f"{callers.prefix}-"
    wanted = len(callers.accepted)
    until(lambda: int(crew.sql(COUNT, prefix)[0][0]) >= wanted, seconds, what=f"{wanted} errands of {callers.prefix}")
    rows = crew.sql(ROWS, prefix)
    assert sorted((row["name"], row["id"]) for row in rows) == sorted(callers.accepted.items())
    assert {row["state"] for row in rows} == {"done"}
    assert {row["effects"] for row in rows} == {callers.effects}
    tickets = {f"{name}/{number}": 1 for name in callers.accepted for number in range(callers.effects)}
    assert dict(crew.ground.filings(prefix)) == tickets, "each effect under one key"
    assert [row["name"] for row in rows if row["again"] and not row["crashes"]] == []
    books = Books(
        jobs=len(rows),
        attempts=sum(row["attempt"] for row in rows),
        retries=sum(row["retries"] for row in rows),
        crashes=sum(row["crashes"] for row in rows),
        again=int(sum(row["again"] for row in rows)),
        repeated=crew.ground.repeated_calls() - callers.repeated_before,
    )
    assert books.repeated <= books.again, f"repeated in silence: {books}"
    crew.audit()
    submits = f"{callers.per_second:.0f} submits/s, retried {callers.retried}, replayed {callers.replayed}"
    print(f"{callers.prefix}: {books}, {submits}")
    return books
