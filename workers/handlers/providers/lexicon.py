"""The words by which the offline provider knows languages, categories, urgency and commands to itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel

# Written without spaces, or with particles glued to the word: a stem may start anywhere.
UNSPACED = frozenset({"ar", "ja", "ko", "zh"})

Pattern = re.Pattern[str]


class Words(BaseModel):
    category_stems: Mapping[str, Mapping[str, Sequence[str]]]
    function_words: Mapping[str, frozenset[str]]
    urgency_stems: Mapping[str, Sequence[str]]
    addresses_the_model: Sequence[str]


class Lexicon:
    """`lexicon.json`, compiled. `categories[language][category]` finds the stems of that category."""

    def __init__(self, words: Words) -> None:
        self.function_words = words.function_words
        self.categories: dict[str, dict[str, Pattern]] = {
            language: {category: stems(found, anywhere=language in UNSPACED) for category, found in known.items()}
            for language, known in words.category_stems.items()
        }
        self.urgency = {level: stems(found, anywhere=True) for level, found in words.urgency_stems.items()}
        self.addresses_the_model = re.compile("|".join(words.addresses_the_model), re.IGNORECASE)


def stems(found: Iterable[str], *, anywhere: bool) -> Pattern:
    """One pattern for all stems, the longest first."""
    longest_first = sorted(found, key=len, reverse=True)
    start = "" if anywhere else r"(?<!\w)"
    return re.compile(start + "(?:" + "|".join(re.escape(stem) for stem in longest_first) + ")")


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    text = Path(__file__).with_name("lexicon.json").read_text(encoding="utf-8")
    return Lexicon(Words.model_validate_json(text))
