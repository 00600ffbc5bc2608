"""Text in and out of a command: UTF-8, whatever the locale of the shell says."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from io import TextIOWrapper

from app.domain.errors import Refused


def speak_utf8() -> None:
    """Makes stdout and stderr UTF-8, as JSON is, so that no answer fails at the last step."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def refuse_what_is_no_text(words: Iterable[str]) -> None:
    """Raises `Refused` 422 for an argument that was not UTF-8: nothing can send or store it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise Refused("invalid-request", 422, f"an argument is not UTF-8: {word!a}") from None
