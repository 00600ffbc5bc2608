"""The built-in provider: deterministic, offline, and good enough to be useful.

It classifies by words in fourteen languages and answers from a phrase book in the language of the ticket. Text
that addresses the model instead of the desk is left out before anything is decided, and is never repeated.
"""

from __future__ import annotations

import re

from workers.handlers.providers.base import Prompt, Step
from workers.handlers.providers.language import language_of
from workers.handlers.providers.lexicon import Lexicon, lexicon
from workers.handlers.providers.phrases import reply_to
from workers.handlers.tickets import Category, Classification, Draft, History, Language, Urgency

# Marks of a prompt's structure: a customer has no use for them.
STRUCTURE = re.compile(
    r"</?(?:system|ticket|assistant|user|instructions?)>|\[/?INST\]|<\|[^|\n]{0,40}\|>", re.IGNORECASE
)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
FOR_PEOPLE = frozenset({Category.SECURITY, Category.PRIVACY, Category.OTHER})


class OfflineProvider:
    """Implements `Provider`. The same prompt always gets the same answer."""

    async def complete(self, prompt: Prompt) -> str:
        match prompt.step:
            case Step.CLASSIFY:
                return classify(prompt.subject, prompt.body).model_dump_json()
            case Step.DRAFT:
                classification = Classification.model_validate(prompt.facts["classification"])
                history = History.model_validate(prompt.facts["history"])
                return Draft(reply=reply_to(classification, history)).model_dump_json()


def classify(subject: str, body: str) -> Classification:
    """The category with the most different words for it; a tie, and what is delicate, is also for a person."""
    words = lexicon()
    said, commands = without_commands(f"{subject}\n{body}", words)
    language = language_of(said, words.function_words)
    scores = category_scores(said.casefold(), language, words)
    best = max(Category, key=lambda category: scores.get(category, 0))
    category = best if scores.get(best, 0) else Category.OTHER
    tie = sum(score == scores[best] for score in scores.values()) > 1 if scores else False
    return Classification(
        category=category,
        language=language,
        urgency=urgency_of(said.casefold(), words),
        needs_human=commands or tie or language == "und" or category in FOR_PEOPLE,
    )


def without_commands(text: str, words: Lexicon) -> tuple[str, bool]:
    """The sentences that do not speak to the model, and whether there were others."""
    unmarked, marks = STRUCTURE.subn("\n", text)
    sentences = SENTENCE_END.split(unmarked)
    kept = [sentence for sentence in sentences if not words.addresses_the_model.search(sentence)]
    return "\n".join(kept), bool(marks) or len(kept) < len(sentences)


def category_scores(text: str, language: Language, words: Lexicon) -> dict[Category, int]:
    """How many different stems of each category `text` has; categories without any are left out.

    English words count in every language: product and error texts are in English everywhere.
    """
    scores: dict[Category, int] = {}
    for category in Category:
        found: set[str] = set()
        for known in {language, "en"} & words.categories.keys():
            pattern = words.categories[known].get(category)
            found |= set(pattern.findall(text)) if pattern else set()
        if found:
            scores[category] = len(found)
    return scores


def urgency_of(text: str, words: Lexicon) -> Urgency:
    """What the customer says of it. Who says both is not in a hurry and in a hurry: that is `normal`."""
    calm = words.urgency[Urgency.LOW].search(text) is not None
    hurried = words.urgency[Urgency.HIGH].search(words.urgency[Urgency.LOW].sub(" ", text)) is not None
    if calm == hurried:
        return Urgency.NORMAL
    return Urgency.LOW if calm else Urgency.HIGH
