"""A kind: the name of a type of job, as the workers that know it published it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.domain.jsontext import JsonObject

NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,99}"
DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 5
PRIORITY_MAX = 9
DEFAULT_TIMEOUT_SECONDS = 300.0
TIMEOUT_SECONDS_MAX = 7 * 86_400.0
DEFAULT_MAX_RETRIES = 2
MAX_RETRIES_CAP = 5

_is_name = re.compile(NAME_PATTERN).fullmatch


def is_name(text: str) -> bool:
    """Whether the text can name a kind or a queue."""
    return _is_name(text) is not None


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a job of the kind gets where its caller said nothing.

    `timeout_seconds` bounds one attempt; `priority` is 0 (first) to 9. None: the system's default.
    """

    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    max_retries: int = DEFAULT_MAX_RETRIES
    queue: str | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A published kind. The schemas are JSON Schema 2020-12 documents."""

    name: str
    version: str
    input_schema: JsonObject
    output_schema: JsonObject
    defaults: Defaults
