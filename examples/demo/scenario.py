"""What the demonstration plans: which ticket meets which misfortune, and how each has to end.

The misfortunes are a script for the provider (`workers.handlers.providers.scripted`). Held tickets wait in the
middle of their job until the script is rewritten, so the kill needs no lucky moment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICKETS_FILE = Path(__file__).parents[1] / "tickets.jsonl"

KILLED = "T-011"
NEIGHBOURS = ("T-003", "T-017", "T-045")
HELD = (KILLED, *NEIGHBOURS)
REFUSED = "T-009"
NONSENSE = "T-040"
EMPTY = "T-047"

# How a ticket ends before the replay. Every other one is done.
DEAD_AT_FIRST = {REFUSED: "permanent_error", NONSENSE: "retries_exhausted", EMPTY: "invalid_input"}
DEAD_FOR_GOOD = {ticket: reason for ticket, reason in DEAD_AT_FIRST.items() if ticket != REFUSED}

Rule = dict[str, Any]

PASSING: tuple[Rule, ...] = (
    {"do": "throttle", "ticket": "T-004", "step": "classify", "attempts": [1], "seconds": 1},
    {"do": "throttle", "ticket": "T-013", "step": "draft", "attempts": [1], "seconds": 1},
    {"do": "time_out", "ticket": "T-006", "step": "draft", "attempts": [1], "seconds": 1},
    {"do": "nonsense", "ticket": "T-018", "step": "classify", "attempts": [1]},
    {"do": "slow", "ticket": "T-028", "step": "draft", "attempts": [1], "seconds": 2},
)
LASTING: Rule = {"do": "nonsense", "ticket": NONSENSE, "step": "draft"}
REFUSAL: Rule = {"do": "refuse", "ticket": REFUSED, "step": "draft"}
HOLDS: tuple[Rule, ...] = tuple({"do": "hold", "ticket": ticket, "step": "draft"} for ticket in HELD)


@dataclass(frozen=True, slots=True)
class Ticket:
    """One line of `tickets.jsonl`. `key` is the idempotency key it is submitted with."""

    id: str
    input: dict[str, Any]

    @property
    def key(self) -> str:
        return f"demo-{self.id}"


def tickets() -> list[Ticket]:
    """All of them, in the order of the file."""
    lines = TICKETS_FILE.read_text(encoding="utf-8").splitlines()
    return [Ticket(document["id"], document) for document in map(json.loads, lines)]


class Provider:
    """The script of the provider: what it does wrong now, and what it was asked so far."""

    def __init__(self, folder: Path) -> None:
        self.script_file = folder / "provider.json"
        self._journal = folder / "provider-calls.jsonl"

    def plan(self) -> None:
        """Everything at once: the held tickets, the misfortunes that pass and those that stay."""
        self._write([*HOLDS, *PASSING, LASTING, REFUSAL])

    def let_go(self) -> None:
        """The held tickets get their answers."""
        self._write([*PASSING, LASTING, REFUSAL])

    def recover(self) -> None:
        """The provider no longer refuses. It still talks nonsense about one ticket."""
        self._write([*PASSING, LASTING])

    def calls(self) -> list[dict[str, Any]]:
        """What it was asked, noted by itself: `ticket`, `step`, `attempt`, `pid`, and what it `did`."""
        if not self._journal.exists():
            return []
        return [json.loads(line) for line in self._journal.read_text(encoding="utf-8").splitlines()]

    def _write(self, rules: list[Rule]) -> None:
        fresh = self.script_file.with_suffix(".new")
        fresh.write_text(json.dumps({"journal": str(self._journal), "rules": rules}), encoding="utf-8")
        fresh.replace(self.script_file)
