"""Answers whose JSON text is written elsewhere, digit for digit, and the validators of their caches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from fastapi import Request, Response

from app.domain.views import JsonText


def as_json(text: JsonText) -> Response:
    """200 with this JSON text."""
    return Response(text, media_type="application/json")


def as_json_unless_known(request: Request, text: JsonText) -> Response:
    """200 with `ETag`, or 304 when `If-None-Match` (RFC 9110, weak comparison) names it."""
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if _names(request.headers.getlist("If-None-Match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(text, media_type="application/json", headers=headers)


def _names(values: Iterable[str], tag: str) -> bool:
    given = {value.strip().removeprefix("W/") for value in ",".join(values).split(",")}
    return tag in given or "*" in given
