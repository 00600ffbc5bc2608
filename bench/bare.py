"""A POST with the body and the answer of ours that stores nothing: what FastAPI and Pydantic alone can do."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID, uuid4

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

app = FastAPI(openapi_url=None)


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: str = Field(min_length=1, max_length=100)
    queue: str = Field(default="default", max_length=100)
    priority: int = Field(default=5, ge=0, le=9)
    input: dict[str, Any]


class Answered(BaseModel):
    id: UUID
    state: Literal["queued"] = "queued"
    kind: str
    queue: str
    priority: int


@app.post("/v1/jobs", status_code=202)
async def accept(asked: Asked) -> Answered:
    """An id and nothing behind it."""
    return Answered(id=uuid4(), kind=asked.kind, queue=asked.queue, priority=asked.priority)
