"""What a provider is asked, and the one method it has.

A provider is outside: its answer is text that somebody else chose, and `answers.py` checks it before use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class Step(StrEnum):
    CLASSIFY = "classify"
    DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question. Only `instructions` and `facts` are ours; `subject` and `body` are quoted text.

    `answer_schema` is the JSON Schema of the wanted answer. `reference` is the ticket's id and `attempt` the
    job's, for logs. `idempotency_key` is the same whenever the same job asks the same question.
    """

    step: Step
    instructions: str
    subject: str
    body: str
    reference: str
    attempt: int
    idempotency_key: str
    answer_schema: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Provider(Protocol):
    async def complete(self, prompt: Prompt) -> str:
        """The answer as JSON text.

        Raises `Throttled` (with the seconds to wait, where the provider names them), `Transient`, `Permanent`,
        or whatever its HTTP client raises for time-outs and cut connections.
        """
        ...
