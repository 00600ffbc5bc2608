"""A crash at any moment around an outside call: one key for ever, one record, and a word where nobody can know."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.failpoints import Action, Point, fired, order, pid_of
from app.store.audit import run_checks
from app.store.database import Database
from tests.client import Client, journal_of
from tests.integration.desk import help_desk
from tests.integration.shell import Shell
from tests.processes import Stack, wait_until

HANDLERS = ["tests.handlers.paying"]
ENDED = ("done", "dead", "cancelled")


@dataclass
class Shop:
    """API, one worker that is killed where a test orders it, the desk, and a file that takes all it is told."""

    client: Client
    outlast: Shell
    desk: str
    journal: Path
    failpoints: Path

    def run(self, kind: str, *effects: str, policy: str = "repeatable", dies: Point | None = None) -> dict[str, Any]:
        """The job once it has ended; its process is killed once, at its first effect's `dies`, or as it returns."""
        about = kind if dies is Point.FINISH_RETURNED else effects[0]
        before = 0 if dies is None else len(fired(self.failpoints, dies, about))
        if dies is not None:
            order(self.failpoints, Action.KILL, dies, about)
        wanted = {"desk": self.desk, "journal": str(self.journal), "effects": effects, "policy": policy}
        job = self.client.wait_for(self.client.submit(kind, wanted), *ENDED, seconds=60)
        if dies is not None:
            assert len(fired(self.failpoints, dies, about)) == before + 1
            assert job["crashes"] == 1
        return job

    def performed(self, effect: str) -> list[str]:
        """The keys under which the file was told of the effect, in order."""
        return [line[-1] for line in journal_of(self.journal).lines("perform") if " ".join(line[:-1]) == effect]

    def effect(self, job: dict[str, Any], key: str) -> dict[str, Any]:
        [found] = [effect for effect in self.client.effects(job["id"]) if effect["key"] == key]
        return found

    async def replay(self, job: dict[str, Any]) -> dict[str, Any]:
        ran = await self.outlast("dead", "replay", job["id"], "--reason", "looked it up", "--yes")
        assert ran.code == 0, ran.err
        return await asyncio.to_thread(self.client.wait_for, job["id"], *ENDED, seconds=60)


@pytest.fixture
async def shop(stack: Stack, db: Database, tmp_path: Path) -> AsyncIterator[Shop]:
    stack.settings = stack.settings.model_copy(update={"transport": "pg"})
    failpoints = tmp_path / "failpoints"
    failpoints.mkdir()
    stack.api()
    stack.worker(HANDLERS, env={"OUTLAST_FAILPOINTS": str(failpoints)})
    client = Client(stack.api_url)
    wait_until(lambda: client.http.get("/v1/kinds").json()["data"], 60, what="the kinds")
    with help_desk(tmp_path) as desk:
        yield Shop(client, Shell(stack.settings), desk, tmp_path / "journal", failpoints)
    assert await run_checks(db) == []


async def test_a_crash_around_a_call_leaves_one_record_one_key_and_no_doubt_unsaid(shop: Shop) -> None:
    """A payment made twice after a crash between the call and its record, or never, after one before the call."""
    # The receiver honours keys: the second call brings back the first answer.
    job = shop.run("pay.at-desk", "accepted", "next", dies=Point.EFFECT_CALLED)
    assert (job["state"], job["attempt"], job["result"]) == ("done", 2, ["F-00001", "F-00002"])
    assert (shop.effect(job, "accepted")["calls"], shop.effect(job, "next")["calls"]) == (2, 1)
    counts = shop.client.http.get(f"{shop.desk}/counts").json()
    assert (counts["filings"], sorted(counts["calls_by_key"].values())) == (2, [1, 2])

    # It has no idea of keys and the handler says it may be called again: so it is, with the same key, and it shows.
    job = shop.run("pay.in-file", "told twice", dies=Point.EFFECT_CALLED)
    assert (job["state"], shop.effect(job, "told twice")["calls"]) == ("done", 2)
    first, second = shop.performed("told twice")
    assert first == second

    # On record, or the handler had even returned: never called again.
    for key, dies in (("recorded", Point.EFFECT_RECORDED), ("returned", Point.FINISH_RETURNED)):
        job = shop.run("pay.in-file", key, dies=dies)
        assert (job["state"], job["attempt"], job["result"]) == ("done", 2, [f"{key} performed"])
        assert len(shop.performed(key)) == 1

    # Only the intent: called once in the end.
    job = shop.run("pay.in-file", "intended", dies=Point.EFFECT_INTENDED)
    assert (job["state"], len(shop.performed("intended"))) == ("done", 1)

    # The outside can be asked: it says what happened.
    for key, dies, answer in (
        ("found there", Point.EFFECT_CALLED, "found there found"),
        ("not there", Point.EFFECT_INTENDED, "not there performed"),
    ):
        job = shop.run("pay.asked", key, dies=dies)
        assert (job["state"], job["result"], len(shop.performed(key))) == ("done", [answer], 1)


async def test_what_may_have_happened_and_must_not_happen_twice_waits_for_an_operator(shop: Shop) -> None:
    """Whether the customer was charged is guessed, one way or the other."""
    verdicts = {
        "charged": (Point.EFFECT_CALLED, ["--performed", "--result", '"seen at the bank"']),
        "not charged": (Point.EFFECT_INTENDED, ["--not-performed"]),
    }
    keys: set[str] = set()
    for key, (dies, verdict) in verdicts.items():
        job = shop.run("pay.in-file", key, "afterwards", policy="at_most_once", dies=dies)
        assert (job["state"], job["reason"]) == ("dead", "effect_unknown")
        assert (await shop.outlast("dead", "replay", job["id"], "--reason", "try", "--yes")).code == 5
        resolved = await shop.outlast("effect", "resolve", job["id"], key, *verdict, "--reason", "looked", "--yes")
        assert resolved.code == 0, resolved.err
        job = await shop.replay(job)
        assert job["state"] == "done"
        assert len(shop.performed(key)) == 1
        keys |= {*shop.performed(key)}
    assert len({*keys, *shop.performed("afterwards")}) == 4, "another key for each effect of each job"


async def test_effects_are_told_apart_by_their_names_and_not_by_their_order(shop: Shop) -> None:
    """After a deploy the second step is given the recorded result of the first; two steps of one name share one."""
    order(shop.failpoints, Action.STOP, Point.EFFECT_RECORDED, "first")
    wanted = {"journal": str(shop.journal), "effects": ["first", "second", "third"]}
    job_id = shop.client.submit("pay.in-file", wanted)
    [stopped] = wait_until(lambda: fired(shop.failpoints, Point.EFFECT_RECORDED, "first"), 30, what="the first effect")
    Path(f"{shop.journal}.turned").touch()
    os.kill(pid_of(stopped), signal.SIGKILL)
    job = await asyncio.to_thread(shop.client.wait_for, job_id, "done", seconds=60)
    assert job["result"] == ["third performed", "second performed", "first performed"]
    assert [len(shop.performed(key)) for key in wanted["effects"]] == [1, 1, 1]

    clash = shop.run("pay.twice", "same")
    assert (clash["state"], clash["reason"], len(shop.performed("same"))) == ("dead", "effect_mismatch", 1)
    assert shop.performed("same more") == []
