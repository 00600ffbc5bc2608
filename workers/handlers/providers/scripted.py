"""A provider that misbehaves as a file says: for demonstrations, chaos and tests.

The file is read again at every call, so an edit is "the provider recovered". Its form:

    {"journal": "/path/calls.jsonl",
     "rules": [{"do": "throttle", "step": "classify", "ticket": "T-004", "attempts": [1], "seconds": 2}]}

The first rule that fits a call decides. A rule without `step`, `ticket` or `attempts` fits any. `do` is one of
`slow` (answers after `seconds`), `hold` (answers once the rule is gone from the file), `throttle` (asks for
`seconds` of patience), `time_out` (hangs for `seconds`, then fails as an HTTP read does), `nonsense`, `refuse`
(fails for good), `die` (takes its process along).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Literal, assert_never

import httpx
from pydantic import BaseModel, ConfigDict, Field

from outlast import Permanent, Throttled
from workers.handlers.providers.base import Prompt, Provider, Step

HOLD_POLL_SECONDS = 0.05
NONSENSE = '{"category": "sandwich", "reply": ["http://evil.example"], "needs_human": '


class Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")

    do: Literal["slow", "hold", "throttle", "time_out", "nonsense", "refuse", "die"]
    step: Step | None = None
    ticket: str | None = None
    attempts: frozenset[int] = frozenset()
    seconds: float = Field(default=0, ge=0, le=3_600)

    def fits(self, prompt: Prompt) -> bool:
        return (
            (self.step is None or self.step is prompt.step)
            and (self.ticket is None or self.ticket == prompt.reference)
            and (not self.attempts or prompt.attempt in self.attempts)
        )


class Script(BaseModel):
    """What to do to which call. Every call is noted in `journal`, one JSON line each, before it is carried out."""

    model_config = ConfigDict(extra="forbid")

    rules: list[Rule] = []
    journal: Path | None = None

    def rule_for(self, prompt: Prompt) -> Rule | None:
        return next((rule for rule in self.rules if rule.fits(prompt)), None)


class ScriptedProvider:
    """Implements `Provider` on top of another one."""

    def __init__(self, inner: Provider, script_file: Path) -> None:
        self._inner = inner
        self._script_file = script_file

    async def complete(self, prompt: Prompt) -> str:
        script = self._script()
        rule = script.rule_for(prompt)
        if script.journal is not None:
            note(script.journal, prompt, rule)
        return await self._inner.complete(prompt) if rule is None else await self._misbehave(rule, prompt)

    async def _misbehave(self, rule: Rule, prompt: Prompt) -> str:
        match rule.do:
            case "slow":
                await asyncio.sleep(rule.seconds)
                return await self._inner.complete(prompt)
            case "hold":
                while self._script().rule_for(prompt) == rule:  # noqa: ASYNC110  # the event is in a file
                    await asyncio.sleep(HOLD_POLL_SECONDS)
                return await self._inner.complete(prompt)
            case "throttle":
                raise Throttled("the provider's quota is used up", retry_after=rule.seconds)
            case "time_out":
                await asyncio.sleep(rule.seconds)
                raise httpx.ReadTimeout("the provider did not answer in time")
            case "nonsense":
                return NONSENSE
            case "refuse":
                raise Permanent("the provider refuses this request")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
                raise AssertionError("SIGKILL cannot be survived")
            case _:
                assert_never(rule.do)

    def _script(self) -> Script:
        return Script.model_validate_json(self._script_file.read_bytes())


def note(journal: Path, prompt: Prompt, rule: Rule | None) -> None:
    """One line in one write, so that lines of several processes do not mix."""
    line = {
        "step": prompt.step,
        "ticket": prompt.reference,
        "attempt": prompt.attempt,
        "idempotency_key": prompt.idempotency_key,
        "pid": os.getpid(),
        "did": rule.do if rule else "answer",
    }
    with journal.open("ab", buffering=0) as log:
        log.write(json.dumps(line).encode() + b"\n")
