"""`outlast job`, `effect`, `queue`, `workers`, `audit`, `doctor`: what they print and how they exit."""

from __future__ import annotations

from uuid import uuid4

import pytest

from app.domain.kinds import Defaults, Kind
from app.settings import Settings
from app.store import kinds
from tests.integration.shell import Shell
from tests.integration.world import KIND, World


async def test_a_submitted_job_is_shown_explained_and_listed_digit_for_digit(world: World, outlast: Shell) -> None:
    await kinds.publish(world.db, [Kind(KIND, "1", {}, {}, Defaults())])
    exact = '{"big":1000000000000000000000000000000,"z":1,"a":9007199254740993}'
    ran = await outlast("job", "submit", KIND, "-i", "-", "--priority", 2, stdin=exact)
    assert (ran.code, len(ran.lines)) == (0, 1)
    job_id = ran.lines[0]
    shown = await outlast("job", "show", job_id, "-o", "json")
    assert f'"input":{exact}' in shown.out
    assert shown.json()["priority"] == 2
    assert job_id in (await outlast("job", "show", job_id)).out
    assert (await outlast("job", "list", "-o", "ids")).lines == [job_id]
    assert (await outlast("job", "list", "--state", "queued", "-o", "json")).json()["data"][0]["id"] == job_id
    assert (await outlast("job", "list", "--state", "done", "-o", "jsonl")).out == ""
    await world.execute("UPDATE workers SET left_at = clock_timestamp()")
    assert (await outlast("job", "explain", job_id, "-o", "json")).json()["reason"] == "no_worker"
    assert (await outlast("job", "timeline", job_id, "-o", "json")).json()["events"][0]["event"] == "submitted"


async def test_one_idempotency_key_makes_one_job(world: World, outlast: Shell) -> None:
    await kinds.publish(world.db, [Kind(KIND, "1", {}, {}, Defaults())])
    words = ("job", "submit", KIND, "--idempotency-key", "k1", "-i")
    first, second, other = [await outlast(*words, text) for text in ('{"a":1}', '{"a":1}', '{"a":2}')]
    assert first.out == second.out
    assert other.code == 5
    assert "/input" in other.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("job", "submit", "no.such.kind"), 2),
        (("job", "submit", KIND, "-i", "NaN"), 2),
        (("job", "submit", KIND, "--run-at", "2031-01-01T00:00:00"), 2),
        (("job", "show", uuid4()), 4),
        (("job", "show", "not-an-id"), 2),
        (("job", "cancel", uuid4(), "--yes"), 4),
        (("job", "cancel", uuid4()), 2),
        (("job", "retry", uuid4()), 2),
        (("job", "list", "--state", "lost"), 2),
        (("job", "list", "--since", "2031-01-01T00:00:00"), 2),
        (("job", "list", "--cursor", "nonsense"), 2),
        (("dead", "show", uuid4()), 4),
        (("effect", "list", uuid4()), 4),
        (("effect", "resolve", uuid4(), "k", "--reason", "r", "--not-performed"), 2),
        (("effect", "resolve", uuid4(), "k", "--reason", "r", "--yes"), 2),
        (("effect", "resolve", uuid4(), "k", "--reason", "r", "--not-performed", "--yes"), 4),
        (("nonsense",), 2),
    ],
)
async def test_what_cannot_be_done_has_its_exit_code_and_nothing_on_stdout(
    outlast: Shell, words: tuple[object, ...], code: int
) -> None:
    ran = await outlast(*words)
    assert (ran.code, ran.out) == (code, "") or (code == 4 and ran.code == 4)
    assert ran.err


async def test_a_dependency_that_is_away_is_exit_9(outlast: Shell) -> None:
    nowhere = {"OUTLAST_DATABASE_URL": "postgresql://127.0.0.1:1/outlast"}
    for words in (("job", "list"), ("dead", "groups"), ("audit",), ("doctor",), ("migrate",)):
        assert (await outlast(*words, env=nowhere)).code == 9
    for words in (("audit",), ("doctor",)):
        assert (await outlast(*words, env={"OUTLAST_REDIS_URL": "redis://127.0.0.1:1/0"})).code == 9
    assert (await outlast("job", "list", env={"OUTLAST_REDIS_URL": "redis://127.0.0.1:1/0"})).code == 0


async def test_settings_that_contradict_each_other_are_exit_2_and_named(outlast: Shell) -> None:
    ran = await outlast("job", "list", env={"OUTLAST_LEASE_SECONDS": "0.1"})
    assert ran.code == 2
    assert "heartbeat_seconds < suspect_seconds < lease_seconds" in ran.err


async def test_cancel_answers_for_each_job_and_is_idempotent(world: World, outlast: Shell) -> None:
    waiting, other = await world.submit(2)
    unknown = uuid4()
    ran = await outlast("job", "cancel", "-", unknown, "--yes", "-o", "json", stdin=f"{waiting}\n{other} {waiting}")
    assert ran.code == 6
    assert [(item["job_id"], item["outcome"]) for item in ran.json()["data"]] == [
        (str(waiting), "cancelled"),
        (str(other), "cancelled"),
        (str(unknown), "job-not-found"),
    ]
    again = await outlast("job", "cancel", waiting, "--yes", "-o", "jsonl")
    assert (again.code, again.json()["outcome"]) == (0, "cancelled_before")
    done = await world.run()
    await world.finish(done)
    assert (await outlast("job", "cancel", done[0].id, "--yes")).code == 5


async def test_an_action_is_on_record_under_the_name_of_who_did_it(world: World, outlast: Shell) -> None:
    named, by_environment, by_user = await world.submit(3)
    await outlast("job", "cancel", named, "--yes", "--reason", "why", "--actor", "ann")
    await outlast("job", "cancel", by_environment, "--yes", env={"OUTLAST_ACTOR": "bob"})
    await outlast("job", "cancel", by_user, "--yes")
    assert await world.actions(named) == [("ann", "cancel", "why")]
    assert (await world.actions(by_environment))[0][0] == "bob"
    assert "@" in (await world.actions(by_user))[0][0]


async def test_retry_ends_with_the_budget(world: World, outlast: Shell) -> None:
    [job_id] = await world.die(max_retries=1)
    assert (await outlast("job", "retry", job_id, "--yes")).code == 0
    await world.bury(await world.claim([job_id]))
    ran = await outlast("job", "retry", job_id, "--yes", "-o", "json")
    assert (ran.code, ran.json()["data"][0]["outcome"]) == (5, "retry-budget-exhausted")


async def test_watch_ends_with_the_job_or_after_its_time(world: World, outlast: Shell) -> None:
    done = await world.run()
    await world.finish(done)
    [dead] = await world.die()
    [waiting] = await world.submit()
    assert (await outlast("job", "watch", done[0].id)).code == 0
    assert (await outlast("job", "watch", dead)).code == 1
    assert (await outlast("job", "watch", waiting, "--timeout", 0.3)).code == 7


async def test_an_effect_in_doubt_is_listed_and_resolved(world: World, outlast: Shell) -> None:
    job_id = await world.die_in_doubt()
    [effect] = (await outlast("effect", "list", job_id, "-o", "json")).json()["data"]
    assert (effect["key"], effect["state"], effect["policy"]) == ("pay", "intent", "at_most_once")
    words = ("effect", "resolve", job_id, "pay", "--reason", "asked", "--yes")
    assert (await outlast(*words, "--not-performed")).code == 5
    assert (await outlast(*words, "--performed", "--result", "{")).code == 2
    assert (await outlast(*words, "--performed", "--result", '{"receipt":7}')).code == 0
    assert (await outlast(*words, "--performed")).code == 5


async def test_recorded_text_cannot_drive_the_terminal(world: World, outlast: Shell) -> None:
    [job_id] = await world.die()
    await world.execute("UPDATE dead_letters SET fingerprint = E'\\x1b]0;owned\\x07\\u009b31m'")
    ran = await outlast("dead", "show", job_id)
    assert ran.code == 0
    assert all(line.isprintable() for line in ran.lines)
    assert "owned" in ran.out


async def test_queues_and_workers_are_listed(world: World, outlast: Shell) -> None:
    await world.submit(2)
    await world.run()
    await world.die()
    await world.beat()
    [queue] = (await outlast("queue", "list", "-o", "json")).json()["data"]
    assert [queue[name] for name in ("queue", "waiting", "running", "dead", "workers", "slots")] == [
        *("default", 2, 1, 1, 1, 10)
    ]
    [worker] = (await outlast("workers", "list", "-o", "json")).json()["data"]
    assert (worker["id"], worker["status"], worker["running"]) == (str(world.worker_id), "live", 1)


async def test_audit_says_so_and_names_the_jobs(world: World, outlast: Shell) -> None:
    [job_id] = await world.submit()
    whole = await outlast("audit", "-o", "json")
    assert (whole.code, whole.json()) == (0, {"ok": True, "findings": []})
    await world.execute("DELETE FROM outbox")
    ran = await outlast("audit", "-o", "json")
    assert ran.code == 8
    finding = {"check": "conservation", "job_id": str(job_id), "detail": "a job without a home"}
    assert ran.json() == {"ok": False, "findings": [finding]}
    assert str(job_id) in (await outlast("audit")).out
    away = await outlast("audit", env={"OUTLAST_REDIS_URL": "redis://127.0.0.1:1/0"})
    assert away.code == 8, "what is broken counts for more than who is away"


async def test_doctor_shows_settings_with_their_sources_and_no_secret(settings: Settings, outlast: Shell) -> None:
    ran = await outlast("doctor", "-o", "json", env={"OUTLAST_API_TOKEN": "s3cret-token"})
    assert ran.code == 0
    found = {item["check"]: item for item in ran.json()["data"]}
    assert found["OUTLAST_LEASE_SECONDS"]["detail"] == "2.0 from the environment"
    assert found["OUTLAST_MAX_CRASHES"]["detail"] == "3 by default"
    assert (found["schema"]["status"], found["partitions"]["status"]) == ("ok", "ok")
    assert found["workers"] == {"check": "workers", "status": "warning", "detail": "away"}
    password = settings.database_url.get_secret_value().split("@")[0].split(":")[-1]
    assert "s3cret-token" not in ran.out
    assert password not in ran.out
