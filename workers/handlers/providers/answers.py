"""Answers of a provider are untrusted: parsed, checked, and refused without quoting them."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from outlast import Transient

ANSWER_CHARS_MAX = 64_000

A = TypeVar("A", bound=BaseModel)


def read_answer(model: type[A], text: str) -> A:
    """The answer as `model`.

    Raises `Transient` for anything else: asked again, a model often does better. The message names fields and
    rules, never the text, which may repeat what a customer wrote.
    """
    if len(text) > ANSWER_CHARS_MAX:
        raise Transient(f"the provider's answer has {len(text)} characters, {ANSWER_CHARS_MAX} are allowed")
    try:
        return model.model_validate_json(text)
    except ValidationError as refused:
        raise Transient(f"the provider's answer is not a {model.__name__}: {broken_rules(refused)}") from None


def broken_rules(refused: ValidationError) -> str:
    """`field: rule`, for at most five of what is wrong."""
    errors = refused.errors(include_url=False, include_context=False, include_input=False)
    known = {"extra_forbidden": "unknown field"}
    return "; ".join(
        known.get(error["type"]) or f"{'.'.join(str(part) for part in error['loc']) or 'text'}: {error['type']}"
        for error in errors[:5]
    )
