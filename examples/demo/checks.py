"""What has to hold in the end, from what API, help desk, provider and commands say; none of them is asked twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from examples.demo.caller import Answer, Document
from examples.demo.scenario import DEAD_AT_FIRST, DEAD_FOR_GOOD, EMPTY, KILLED, REFUSED

ACCEPTED, REPEATED = 202, 200
PERFORMED_BEFORE_THE_KILL = ("classify", "history")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything there is to judge by; jobs, effects and answers by ticket id.

    `strangers` are jobs nobody submitted, `deaths` is why tickets were dead before the replay. `asked` counts the
    provider's calls by ticket and step, as the provider noted them. `desk` is the help desk's own count.
    """

    answers: Mapping[str, tuple[Answer, Answer]]
    strangers: Set[str]
    deaths: Mapping[str, str]
    jobs: Mapping[str, Document]
    effects: Mapping[str, Sequence[Document]]
    timeline: Document
    killed_pid: int
    supervisor_pids: frozenset[int]
    asked: Mapping[tuple[str, str], int]
    desk: Document
    audit_code: int
    stop_codes: Mapping[str, int]
    left_running: Sequence[int]

    def in_state(self, state: str) -> set[str]:
        return {ticket for ticket, job in self.jobs.items() if job["state"] == state}

    def effect(self, ticket: str, key: str) -> Document:
        """The effect, or an empty document when there is none."""
        none: Document = {}
        return next((effect for effect in self.effects[ticket] if effect["key"] == key), none)


@dataclass(frozen=True, slots=True)
class Check:
    """One promise and whether it held; `seen` is what was found."""

    promise: str
    held: bool
    seen: str


def all_checks(evidence: Evidence) -> list[Check]:
    """Every check, in the order of the story."""
    return [check for part in PARTS for check in part(evidence)]


def submits(evidence: Evidence) -> Iterator[Check]:
    pairs = evidence.answers.values()
    first = [answer for answer, _ in pairs]
    fine = all(answer.status == ACCEPTED and not answer.replayed for answer in first)
    ids = {answer.job_id for answer in first}
    yield Check("every ticket is accepted", fine and len(ids) == len(first), f"{len(ids)} jobs of {len(first)} tickets")
    same = [one.job_id == two.job_id and two.status == REPEATED and two.replayed for one, two in pairs]
    yield Check("a repeated key is answered with the job it made", all(same), f"{sum(same)} of {len(same)}")
    yield Check("no other job exists", not evidence.strangers, f"others {len(evidence.strangers)}")


def ends(evidence: Evidence) -> Iterator[Check]:
    dead = {ticket: evidence.jobs[ticket]["reason"] for ticket in evidence.in_state("dead")}
    deaths = dict(evidence.deaths)
    yield Check("dead letters are the planned ones, with their reasons", deaths == DEAD_AT_FIRST, listed(deaths))
    done = evidence.in_state("done")
    yield Check(
        "after the replay every other ticket is done",
        dead == DEAD_FOR_GOOD and done == evidence.jobs.keys() - dead.keys(),
        f"{len(done)} done, {listed(dead)}",
    )
    yield Check(
        "the empty ticket performed nothing", not evidence.effects[EMPTY], f"effects {len(evidence.effects[EMPTY])}"
    )


def the_kill(evidence: Evidence) -> Iterator[Check]:
    attempts = {attempt["attempt"]: attempt for attempt in evidence.timeline["attempts"]}
    ended = [attempts[number]["end"] for number in sorted(attempts)]
    yield Check("the killed job: attempt 1 lost, attempt 2 done", ended == ["lost", "done"], ", ".join(map(str, ended)))
    first = attempts.get(1, {})
    worker: Document = first.get("worker") or {}
    yield Check(
        "what was killed is the process that ran it, not its supervisor",
        worker.get("pid") == evidence.killed_pid and evidence.killed_pid not in evidence.supervisor_pids,
        f"pid {worker.get('pid')}, {first.get('cause')}",
    )
    retries = evidence.jobs[KILLED]["retries"]["used"]
    yield Check("the kill cost no retry", retries == 0, f"retries {retries}")


def effects_of_the_killed(evidence: Evidence) -> Iterator[Check]:
    ends = {attempt["attempt"]: attempt["ended_at"] for attempt in evidence.timeline["attempts"]}
    killed_at = instant(ends[1]) if ends.get(1) else None
    for key in PERFORMED_BEFORE_THE_KILL:
        effect = evidence.effect(KILLED, key)
        recorded = effect.get("state") == "recorded" and effect["attempt"] == 1 and effect["calls"] == 1
        kept = recorded and killed_at is not None and instant(effect["recorded_at"]) < killed_at
        yield Check(f"{key}: on record before the kill, not performed again", kept, told(effect))
    classified = evidence.asked.get((KILLED, "classify"), 0)
    yield Check("the provider itself was asked to classify once", classified == 1, f"calls {classified}")
    looked_up = evidence.desk["look_ups_by_customer"].get(customer(evidence, KILLED), 0)
    yield Check("the help desk itself was asked for the history once", looked_up == 1, f"look-ups {looked_up}")
    draft = evidence.effect(KILLED, "draft")
    yield Check("draft: cut off by the kill, repeated for all to see", draft.get("calls") == 2, told(draft))


def budgets(evidence: Evidence) -> Iterator[Check]:
    for ticket, misfortune, attempts, retries in (
        ("T-004", "a provider's quota", 2, 0),
        ("T-006", "a provider's time-out", 2, 1),
        ("T-018", "a provider's nonsense", 2, 1),
    ):
        job = evidence.jobs[ticket]
        seen = (job["attempt"], job["retries"]["used"])
        yield Check(
            f"{misfortune} is charged as it should be",
            seen == (attempts, retries),
            f"attempt {seen[0]}, retries {seen[1]}",
        )


def the_replay(evidence: Evidence) -> Iterator[Check]:
    job = evidence.jobs[REFUSED]
    effect = evidence.effect(REFUSED, "classify")
    asked = evidence.asked.get((REFUSED, "classify"), 0)
    kept = (effect.get("attempt"), effect.get("calls"), asked) == (1, 1, 1)
    yield Check(
        "the replayed dead letter is done", job["state"] == "done", f"{job['state']} at attempt {job['attempt']}"
    )
    yield Check("its replay reused what was on record", kept, told(effect))


def the_desk(evidence: Evidence) -> Iterator[Check]:
    by_key: dict[str, int] = evidence.desk["calls_by_key"]
    calls = Counter(by_key.values())
    yield Check(
        "one call to the help desk for each effect key", set(calls) == {1}, f"{calls.total()} keys, calls {dict(calls)}"
    )
    filed = evidence.desk["filings_by_ticket"]
    done = evidence.in_state("done")
    yield Check("filed: every ticket that is done, once", filed == dict.fromkeys(done, 1), f"{len(filed)} tickets")


def the_end(evidence: Evidence) -> Iterator[Check]:
    yield Check("the audit finds nothing", evidence.audit_code == 0, f"exit code {evidence.audit_code}")
    codes = evidence.stop_codes
    yield Check("outlast dev stops clean", codes.get("dev") == 0, f"exit codes {dict(codes)}")
    yield Check("nothing is left running", not evidence.left_running, f"pids {list(evidence.left_running)}")


PARTS: tuple[Callable[[Evidence], Iterator[Check]], ...] = (
    submits,
    ends,
    the_kill,
    effects_of_the_killed,
    budgets,
    the_replay,
    the_desk,
    the_end,
)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def customer(evidence: Evidence, ticket: str) -> str:
    return evidence.jobs[ticket]["input"]["customer"]


def listed(reasons: Mapping[str, str]) -> str:
    return ", ".join(f"{ticket} {reason}" for ticket, reason in sorted(reasons.items())) or "none"


def told(effect: Document) -> str:
    if not effect:
        return "no such effect"
    return f"{effect['state']} by attempt {effect['attempt']}, calls {effect['calls']}"
