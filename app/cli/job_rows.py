"""Jobs as rows of a table and as a sheet of fields."""

from __future__ import annotations

from datetime import datetime

from app.cli.formats import Row
from app.domain.instants import rfc3339
from app.domain.views import JobView, job_json

JOB_TITLES = ("id", "kind", "queue", "state", "reason", "attempt", "retries", "crashes", "created at")
JOB_FIELDS = (
    *("id", "kind", "queue", "priority", "state", "reason", "attempt", "retries", "crashes", "timeout"),
    *("created at", "due at", "deadline", "started at", "finished at"),
    *("progress", "error", "metadata", "input", "result"),
)


def job_row(job: JobView) -> Row:
    cells = (
        *(job.id, job.kind, job.queue, job.state, job.reason, job.attempt, retries(job), job.crashes),
        when(job.created_at),
    )
    return Row(str(job.id), job_json(job, payloads=False), cells)


def job_sheet(job: JobView) -> Row:
    cells = (
        *(job.id, job.kind, job.queue, job.priority, job.state, job.reason, job.attempt, retries(job), job.crashes),
        f"{job.timeout_seconds:g} s",
        *(when(at) for at in (job.created_at, job.due_at, job.deadline, job.started_at, job.finished_at)),
        *(job.progress, job.error, job.metadata, job.input, job.result),
    )
    return Row(str(job.id), job_json(job), cells)


def retries(job: JobView) -> str:
    return f"{job.retries}/{job.max_retries}"


def when(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
