"""Reading dead letters."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from app.api.access import JobId, UseDatabase
from app.api.answers import as_json, as_json_unless_known
from app.api.queries import DeadQueryParams, refuse_repeated
from app.domain.views import dead_letter_json, page_json
from app.usecases import read

router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])


@router.get("", dependencies=[Depends(refuse_repeated)])
async def list_dead_letters(query: DeadQueryParams, db: UseDatabase) -> Response:
    """`{data, next_cursor}`, newest death first; only `next_cursor: null` is the end."""
    page = await read.dead_letters(db, query.filters(), limit=query.limit, cursor=query.cursor)
    return as_json(page_json((dead_letter_json(job, payloads=False) for job in page.data), page.next_cursor))


@router.get("/{job_id}")
async def show_dead_letter(job_id: JobId, request: Request, db: UseDatabase) -> Response:
    """One dead letter, with its input."""
    return as_json_unless_known(request, dead_letter_json(await read.dead_letter(db, job_id)))
