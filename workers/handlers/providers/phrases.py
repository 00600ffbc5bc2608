"""Replies from a phrase book: nothing a customer wrote ever gets into one, save the name the desk knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from workers.handlers.tickets import Classification, History, Urgency

NAME = re.compile(r"[^\W\d_]+(?:[ .'\u2019-]{1,2}[^\W\d_]+){0,4}\.?")
FALLBACK = "en"

Phrases = Mapping[str, str]


@lru_cache(maxsize=1)
def phrase_book() -> Mapping[str, Phrases]:
    """The phrases by language; every language has the same ones."""
    text = Path(__file__).with_name("replies.json").read_text(encoding="utf-8")
    return TypeAdapter(Mapping[str, Phrases]).validate_json(text)


def reply_to(classification: Classification, history: History) -> str:
    """The reply in the ticket's language, in English where the phrase book does not speak it."""
    book = phrase_book()
    phrases = book.get(classification.language) or book[FALLBACK]
    parts = [greeting(phrases, history.name), phrases[classification.category]]
    if classification.urgency is Urgency.HIGH:
        parts.append(phrases["urgent"])
    if history.tickets_before:
        parts.append(phrases["before"].replace("{count}", str(history.tickets_before)))
    return "\n\n".join([*parts, phrases["closing"]])


def greeting(phrases: Phrases, name: str | None) -> str:
    """With the name, if it looks like one."""
    known = phrases["name"].replace("{name}", name) if name and NAME.fullmatch(name) else ""
    return phrases["greeting"].replace("{name}", known)
