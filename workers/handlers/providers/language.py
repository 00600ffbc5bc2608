"""Which language a text is in: by its script, else by its small words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from workers.handlers.tickets import Language

SCRIPTS: tuple[tuple[Language, re.Pattern[str]], ...] = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
)
LATIN_LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr")
LATIN_WORD = re.compile(r"[^\W\d_]{2,}")
SCRIPT_SHARE = 0.2
SMALL_WORDS_MIN = 2


def language_of(text: str, function_words: Mapping[str, frozenset[str]]) -> Language:
    """The language of `text`, `und` when nothing speaks for one.

    A script counts from a fifth of the letters on, so that a quoted product name decides nothing.
    """
    letters = sum(character.isalpha() for character in text) or 1
    for language, script in SCRIPTS:
        if len(script.findall(text)) / letters >= SCRIPT_SHARE:
            return language
    words = Counter(word.casefold() for word in LATIN_WORD.findall(text))
    hits = {known: sum(words[word] for word in function_words[known]) for known in LATIN_LANGUAGES}
    best = max(LATIN_LANGUAGES, key=lambda known: hits[known])
    return best if hits[best] >= SMALL_WORDS_MIN else "und"
