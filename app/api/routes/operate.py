"""What a caller does to a job that exists: cancel, retry; and an operator to a dead one: replay."""

from __future__ import annotations

from uuid import uuid4

from fastapi import APIRouter, Request, Response

from app.api.access import JobId, UseDatabase, UseSettings
from app.api.body import read_json
from app.domain.reasons import reason_in
from app.domain.views import job_json
from app.store.database import Database
from app.usecases import read
from app.usecases.cancel import cancel
from app.usecases.replay import replay
from app.usecases.retry import retry

ACTOR = "api"
JSON = "application/json"

router = APIRouter()


@router.post("/v1/jobs/{job_id}/cancel")
async def cancel_job(job_id: JobId, request: Request, db: UseDatabase) -> Response:
    """Cancels the job; 200 with the job, also when it was cancelled before."""
    reason = await _reason(request, required=False)
    await cancel(db, job_id, reason=reason, actor=ACTOR)
    return await _job(db, job_id, 200)


@router.post("/v1/jobs/{job_id}/retry")
async def retry_job(job_id: JobId, request: Request, db: UseDatabase, settings: UseSettings) -> Response:
    """Gives a dead job another attempt inside its budget; 202 with the job."""
    reason = await _reason(request, required=False)
    await retry(db, settings, job_id, reason=reason, actor=ACTOR)
    return await _job(db, job_id, 202)


@router.post("/v1/dead-letters/{job_id}/replay")
async def replay_dead_letter(job_id: JobId, request: Request, db: UseDatabase) -> Response:
    """Runs a dead letter again with fresh budgets; 202 with the job."""
    reason = await _reason(request, required=True)
    assert reason is not None
    [answer] = await replay(db, [job_id], replay_id=f"api-{uuid4()}", reason=reason, actor=ACTOR)
    if answer.refused is not None:
        raise answer.refused
    return await _job(db, job_id, 202)


async def _reason(request: Request, *, required: bool) -> str | None:
    """The reason in the body; no body at all is an empty object."""
    body = await read_json(request) if await request.body() else {}
    return reason_in(body, required=required)


async def _job(db: Database, job_id: JobId, status: int) -> Response:
    headers = {"Location": f"/v1/jobs/{job_id}"} if status == 202 else {}
    return Response(job_json(await read.job(db, job_id)), status, headers=headers, media_type=JSON)
