"""Submitting jobs, one or many in a request, and the kinds that can be submitted."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request, Response

from app.api import problems
from app.api.access import catalog_of, submitter_of
from app.api.body import read_json
from app.api.direct import DirectRoute
from app.domain.errors import DependencyAway, JsonRefused, OutlastError, Refused
from app.domain.jsontext import JsonValue
from app.domain.request import read_key, read_request
from app.domain.views import dump, job_json
from app.usecases.submit import Order, Submitted

JOBS_MAX = 1_000
JSON = "application/json"

router = APIRouter(route_class=DirectRoute)


@router.post("/v1/jobs", status_code=202)
async def submit(request: Request) -> Response:
    """Puts a job on record. 202, or 200 with `Idempotent-Replayed: true` when its key made it before."""
    key = _key(request)
    submitted = await submitter_of(request).submit(read_request(await read_json(request)), key=key)
    headers = {"Location": f"/v1/jobs/{submitted.job.id}"}
    if submitted.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(job_json(submitted.job), _status(submitted), headers, JSON)


@router.post("/v1/jobs/batch")
async def submit_batch(request: Request) -> Response:
    """Submits up to 1,000 jobs, each for itself.

    `{"data": [...]}` in the order of the request: `{"status": 202 | 200, "replayed", "job"}` for a job on
    record, `{"status", "problem"}` for a refused one. 503 when the database is away for all of them.
    """
    items = _items(await read_json(request))
    orders = [_order(item, f"/jobs/{index}") for index, item in enumerate(items)]
    submitted = iter(await submitter_of(request).submit_all([order for order in orders if isinstance(order, Order)]))
    outcomes = [next(submitted) if isinstance(order, Order) else order for order in orders]
    away = [outcome for outcome in outcomes if isinstance(outcome, DependencyAway)]
    if away and len(away) == len(outcomes):
        raise away[0]
    return Response(f'{{"data":[{",".join(map(_outcome_json, outcomes))}]}}', 200, media_type=JSON)


@router.get("/v1/kinds")
async def kinds(request: Request) -> Response:
    """Every kind that was ever published, with its JSON Schemas and defaults."""
    return Response(dump({"data": [asdict(kind) for kind in await catalog_of(request).all()]}), 200, media_type=JSON)


def _order(item: JsonValue, pointer: str) -> Order | OutlastError:
    try:
        key, body = _take_key(item, pointer)
        return Order(read_request(body, pointer=pointer), key, pointer)
    except (Refused, JsonRefused) as error:
        return error


def _outcome_json(outcome: Submitted | OutlastError) -> str:
    if isinstance(outcome, OutlastError):
        refused = problems.refusal(outcome)
        return dump({"status": refused.status, "problem": problems.document(refused)})
    head = f'"status":{_status(outcome)},"replayed":{"true" if outcome.replayed else "false"}'
    return f'{{{head},"job":{job_json(outcome.job)}}}'


def _items(body: JsonValue) -> list[JsonValue]:
    jobs = body.get("jobs") if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(jobs, list) or len(jobs) > JOBS_MAX:
        detail = f"must be the only member, a list of at most {JOBS_MAX} jobs"
        raise Refused(
            "invalid-request", 422, "The batch is not valid.", errors=[{"pointer": "/jobs", "detail": detail}]
        )
    return jobs


def _take_key(item: JsonValue, pointer: str) -> tuple[str | None, JsonValue]:
    if not isinstance(item, dict) or item.get("idempotency_key") is None:
        return None, item
    body = dict(item)
    key = body.pop("idempotency_key")
    return read_key(key if isinstance(key, str) else "", pointer=f"{pointer}/idempotency_key"), body


def _key(request: Request) -> str | None:
    given = request.headers.getlist("Idempotency-Key")
    if len(given) > 1:
        raise Refused("invalid-idempotency-key", 422, "One request has one idempotency key.")
    return read_key(given[0]) if given else None


def _status(submitted: Submitted) -> int:
    return 200 if submitted.replayed else 202
