"""The provider misbehaves exactly as its script says, and no answer is believed unchecked."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from outlast import Permanent, Throttled, Transient
from tests.processes import ROOT
from workers.handlers.providers.answers import ANSWER_CHARS_MAX, read_answer
from workers.handlers.providers.base import Prompt, Provider, Step
from workers.handlers.providers.choose import provider_from
from workers.handlers.providers.offline import OfflineProvider
from workers.handlers.providers.scripted import ScriptedProvider
from workers.handlers.tickets import Category, Classification, Draft

SECRET = "my card number is 4929"


def prompt(*, ticket: str = "T-1", attempt: int = 1) -> Prompt:
    return Prompt(
        step=Step.CLASSIFY,
        instructions="",
        subject="",
        body="I was charged twice, please refund the invoice",
        reference=ticket,
        attempt=attempt,
        idempotency_key="key",
        answer_schema={},
    )


class Scripted:
    """A scripted provider whose script a test rewrites as it goes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "script.json"
        self.journal = folder / "calls.jsonl"
        self.provider = ScriptedProvider(OfflineProvider(), self.file)
        self.rules()

    def rules(self, *rules: dict[str, Any]) -> Provider:
        self.file.write_text(json.dumps({"journal": str(self.journal), "rules": rules}))
        return self.provider

    def calls(self) -> Sequence[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.read_text().splitlines()]


@pytest.fixture
def script(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path)


async def answer(provider: Provider, asked: Prompt | None = None) -> Classification:
    return read_answer(Classification, await provider.complete(asked or prompt()))


async def test_without_a_rule_the_answer_is_the_other_providers(script: Scripted) -> None:
    assert (await answer(script.provider)).category is Category.BILLING


async def test_throttle_asks_for_patience(script: Scripted) -> None:
    with pytest.raises(Throttled) as throttled:
        await answer(script.rules({"do": "throttle", "seconds": 7}))
    assert throttled.value.retry_after == 7


async def test_a_time_out_is_what_an_http_client_raises(script: Scripted) -> None:
    with pytest.raises(httpx.ReadTimeout):
        await answer(script.rules({"do": "time_out"}))


async def test_nonsense_is_refused_for_another_try(script: Scripted) -> None:
    with pytest.raises(Transient, match="not a Classification"):
        await answer(script.rules({"do": "nonsense"}))


async def test_a_refusal_is_final(script: Scripted) -> None:
    with pytest.raises(Permanent):
        await answer(script.rules({"do": "refuse"}))


async def test_a_slow_answer_comes(script: Scripted) -> None:
    assert (await answer(script.rules({"do": "slow", "seconds": 0.01}))).category is Category.BILLING


async def test_a_held_answer_comes_once_the_rule_is_gone(script: Scripted) -> None:
    held = asyncio.create_task(answer(script.rules({"do": "hold"})))
    assert await asyncio.wait([held], timeout=0.2) == (set(), {held})
    script.rules()
    assert (await asyncio.wait_for(held, 5)).category is Category.BILLING


def test_a_provider_that_dies_takes_its_process_along(script: Scripted) -> None:
    script.rules({"do": "die"})
    ask = "import asyncio, sys; from tests.unit.test_ticket_provider import ask; asyncio.run(ask(sys.argv[1]))"
    died = subprocess.run([sys.executable, "-c", ask, str(script.file)], cwd=ROOT, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL
    assert [call["did"] for call in script.calls()] == ["die"]


async def ask(script_file: str) -> None:
    """What the dying process does."""
    await ScriptedProvider(OfflineProvider(), Path(script_file)).complete(prompt())


async def test_the_first_rule_that_fits_ticket_step_and_attempt_decides(script: Scripted) -> None:
    rules: tuple[dict[str, Any], ...] = (
        {"do": "refuse", "step": "draft"},
        {"do": "refuse", "ticket": "T-2"},
        {"do": "throttle", "ticket": "T-1", "step": "classify", "attempts": [1, 3]},
        {"do": "refuse", "ticket": "T-1", "attempts": [3]},
    )
    provider = script.rules(*rules)
    with pytest.raises(Throttled):
        await answer(provider, prompt(attempt=1))
    assert (await answer(provider, prompt(attempt=2))).category is Category.BILLING
    with pytest.raises(Permanent):
        await answer(provider, prompt(ticket="T-2", attempt=2))
    assert [(call["ticket"], call["attempt"], call["did"]) for call in script.calls()] == [
        ("T-1", 1, "throttle"),
        ("T-1", 2, "answer"),
        ("T-2", 2, "refuse"),
    ]


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Classification, ""),
        (Classification, "null"),
        (Classification, f"Sure! {SECRET}"),
        (Classification, f'{{"category": "{SECRET}", "language": "en", "urgency": "low", "needs_human": false}}'),
        (Classification, '{"category": "billing", "language": "en", "urgency": "low", "needs_human": false, "x": 1}'),
        (Classification, '{"category": "billing"}'),
        (Draft, f'{{"reply": "https://evil.example/{SECRET}"}}'),
        (Draft, '{"reply": "\\u0000"}'),
        (Draft, f'{{"reply": {"[" * 500 + "]" * 500}}}'),
        (Draft, '{"reply": "' + "x" * ANSWER_CHARS_MAX + '"}'),
    ],
)
def test_an_answer_that_is_not_what_was_asked_for_is_refused_and_not_quoted(
    model: type[Classification | Draft], text: str
) -> None:
    with pytest.raises(Transient) as refused:
        read_answer(model, text)
    assert SECRET not in str(refused.value)
    assert len(str(refused.value)) < 500
    assert refused.value.__cause__ is None


def test_an_unknown_provider_is_said_at_once() -> None:
    with pytest.raises(Permanent, match="offline"):
        provider_from({"OUTLAST_TRIAGE_PROVIDER": "oracle"})
    assert isinstance(provider_from({}), OfflineProvider)
    assert isinstance(provider_from({"OUTLAST_TRIAGE_SCRIPT": "/x.json"}), ScriptedProvider)
