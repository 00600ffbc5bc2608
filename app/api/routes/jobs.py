"""Reading jobs: one, its result, its history, its reasons; and lists of them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from app.api.access import JobId, UseDatabase, UseSettings, UseWaiting
from app.api.answers import as_json, as_json_unless_known
from app.api.queries import JobQueryParams, refuse_repeated
from app.api.waiting import wait_seconds
from app.domain.explain import explanation_json
from app.domain.states import TERMINAL
from app.domain.timeline import timeline_json
from app.domain.views import effect_json, job_json, list_json, page_json
from app.usecases import read
from app.usecases.explain import explain

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("", dependencies=[Depends(refuse_repeated)])
async def list_jobs(query: JobQueryParams, db: UseDatabase) -> Response:
    """`{data, next_cursor}`, newest first; only `next_cursor: null` is the end."""
    page = await read.jobs(db, query.filters(), limit=query.limit, cursor=query.cursor)
    return as_json(page_json((job_json(job, payloads=False) for job in page.data), page.next_cursor))


@router.get("/{job_id}")
async def show_job(job_id: JobId, request: Request, db: UseDatabase, waiting: UseWaiting) -> Response:
    """The job; with `Prefer: wait=N` once it is done, cancelled or dead, or after N seconds."""
    job = await read.job(db, job_id)
    seconds = wait_seconds(request.headers.getlist("Prefer"))
    waited = seconds > 0 and (job.state in TERMINAL or await waiting.until_settled(job_id, seconds))
    if waited and job.state not in TERMINAL:
        job = await read.job(db, job_id)
    answer = as_json_unless_known(request, job_json(job))
    if waited:
        answer.headers["Preference-Applied"] = f"wait={seconds}"
    return answer


@router.get("/{job_id}/result")
async def show_result(job_id: JobId, db: UseDatabase) -> Response:
    """What the handler returned."""
    return as_json(await read.result(db, job_id))


@router.get("/{job_id}/timeline")
async def show_timeline(job_id: JobId, db: UseDatabase) -> Response:
    """Attempts by number, events by time."""
    return as_json(timeline_json(await read.timeline(db, job_id)))


@router.get("/{job_id}/effects")
async def show_effects(job_id: JobId, db: UseDatabase) -> Response:
    """The effects on record, in the order they were begun."""
    return as_json(list_json(effect_json(effect) for effect in await read.effects(db, job_id)))


@router.get("/{job_id}/explanation")
async def show_explanation(job_id: JobId, db: UseDatabase, settings: UseSettings) -> Response:
    """Why the job is where it is, what happens next, and who must act."""
    return as_json(explanation_json(await explain(db, settings, job_id)))
