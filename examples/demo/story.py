"""The story: submit, wait, kill, watch, replay, look back, judge."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from examples.demo.caller import Answer, Caller, Document
from examples.demo.checks import Check, Evidence, all_checks, instant
from examples.demo.failures import DemoFailed
from examples.demo.scenario import HELD, KILLED, REFUSED, Provider, tickets
from examples.demo.screen import TERMINAL, Screen
from examples.demo.stack import WORKERS, Stack, is_running, kill

WAIT_SECONDS = 75.0
POLL_SECONDS = 0.1
REPLAY_REASON = "the provider answers again"


def tell(screen: Screen, folder: Path) -> list[Check]:
    """The whole of it; `folder` keeps data, logs and the provider's script. Raises `DemoFailed`, `httpx.HTTPError`."""
    provider = Provider(folder)
    provider.plan()
    screen.step(f"Start PostgreSQL, Redis, API, relay, {WORKERS} workers and a help desk")
    with Stack(folder, provider.script_file) as stack, Caller(stack.api_url, stack.desk_url) as caller:
        pids = stack.pids()
        screen.say(f"ready at {stack.api_url}: {', '.join(f'{name} {pid}' for name, pid in pids.items())}")
        return Story(screen, provider, stack, caller).run()


class Story:
    """One run on a stack that is ready."""

    def __init__(self, screen: Screen, provider: Provider, stack: Stack, caller: Caller) -> None:
        self._screen = screen
        self._provider = provider
        self._stack = stack
        self._caller = caller
        self._answers: dict[str, tuple[Answer, Answer]] = {}
        self._tickets: dict[str, str] = {}
        pids = stack.pids()
        self._supervisors = frozenset(pid for name, pid in pids.items() if name.startswith("worker-"))

    def run(self) -> list[Check]:
        self._submit()
        self._until("every ticket but the held ones ends", self._only_held_are_left)
        pid = self._kill()
        self._until("the killed job runs again", self._runs_again)
        self._let_go()
        self._until("every ticket ends", lambda jobs: all_ended(jobs.values()))
        deaths = self._dead_letters()
        self._replay()
        return self._judge(pid, deaths)

    def _submit(self) -> None:
        waiting = tickets()
        self._screen.step(f"Submit {len(waiting)} tickets over HTTP, each twice with its key")
        first = {ticket.id: self._caller.submit(ticket) for ticket in waiting}
        again = {ticket.id: self._caller.submit(ticket) for ticket in waiting}
        self._answers = {ticket: (answer, again[ticket]) for ticket, answer in first.items()}
        self._tickets = {answer.job_id: ticket for ticket, answer in first.items()}
        self._screen.say(f"{len(first) + len(again)} submits, {len(self._tickets)} jobs")

    def _kill(self) -> int:
        attempt = self._attempts(KILLED)[-1]
        pid = int(attempt["worker"]["pid"])
        others = [ticket for ticket in HELD if ticket != KILLED and self._attempts(ticket)[-1]["worker"]["pid"] == pid]
        self._screen.step(f"kill -9 the worker that is drafting a reply to {KILLED}")
        kill(pid)
        self._screen.say(f"killed process {pid}, which ran {', '.join([KILLED, *others])}")
        return pid

    def _let_go(self) -> None:
        lost, running = self._attempts(KILLED)[:2]
        pause = instant(running["started_at"]) - instant(lost["ended_at"])
        milliseconds = pause.total_seconds() * 1_000
        self._screen.say(f"attempt 1 is {lost['end']}: {lost['cause']}")
        self._screen.say(f"attempt 2 began {milliseconds:.0f} ms later, in process {running['worker']['pid']}")
        self._provider.let_go()
        self._screen.say("the provider answers the held drafts")

    def _dead_letters(self) -> dict[str, str]:
        self._screen.step("Dead letters")
        self._screen.show(self._outlast("dead", "list"))
        return {ticket: job["reason"] for ticket, job in self._standing().items() if job["state"] == "dead"}

    def _replay(self) -> None:
        job_id = self._job_id(REFUSED)
        self._screen.step(f"The provider recovers: replay {REFUSED}")
        self._provider.recover()
        self._screen.show(self._outlast("dead", "replay", job_id, "--reason", REPLAY_REASON, "--yes"))
        self._until("the replayed job ends", lambda jobs: all_ended(jobs.values()))
        self._screen.say(f"{REFUSED} is {self._caller.job(job_id)['state']}")

    def _judge(self, pid: int, deaths: Mapping[str, str]) -> list[Check]:
        self._screen.step(f"The timeline of {KILLED}")
        self._screen.show(self._outlast("job", "timeline", self._job_id(KILLED)))
        jobs = {ticket: self._caller.job(job_id) for job_id, ticket in self._tickets.items()}
        strangers = self._standing().keys() - jobs.keys()
        effects = {ticket: self._caller.effects(job["id"]) for ticket, job in jobs.items()}
        timelines = {ticket: self._caller.timeline(job["id"]) for ticket, job in jobs.items()}
        desk = self._caller.desk_counts()
        self._summarise(jobs, effects, desk)
        audit_code, stop_codes, left_running = self._end(timelines)
        return all_checks(
            Evidence(
                answers=self._answers,
                strangers=strangers,
                deaths=deaths,
                jobs=jobs,
                effects=effects,
                timeline=timelines[KILLED],
                killed_pid=pid,
                supervisor_pids=self._supervisors,
                asked=Counter((call["ticket"], call["step"]) for call in self._provider.calls()),
                desk=desk,
                audit_code=audit_code,
                stop_codes=stop_codes,
                left_running=left_running,
            )
        )

    def _end(self, timelines: Mapping[str, Document]) -> tuple[int, dict[str, int], list[int]]:
        """The audit's exit code, those of what was stopped, and pids that run although all is stopped."""
        self._screen.step("Audit, and stop everything")
        audit = self._stack.command("audit")
        self._screen.show(audit.stdout + audit.stderr)
        attempts = (attempt for timeline in timelines.values() for attempt in timeline["attempts"])
        workers = {attempt["worker"]["pid"] for attempt in attempts if attempt["worker"]}
        everyone = workers | set(self._stack.pids().values())
        stop_codes = self._stack.stop()
        self._screen.say(f"stopped; {len(everyone)} processes seen")
        return audit.returncode, stop_codes, sorted(filter(is_running, everyone))

    def _summarise(self, jobs: Mapping[str, Document], effects: Mapping[str, list[Document]], desk: Document) -> None:
        states = Counter(job["state"] for job in jobs.values())
        reasons = Counter(job["reason"] for job in jobs.values() if job["state"] == "dead")
        recorded = sum(effect["state"] == "recorded" for found in effects.values() for effect in found)
        rows = {
            "accepted": len(jobs),
            "done": states["done"],
            **{f"dead: {reason}": count for reason, count in sorted(reasons.items())},
            "attempts": sum(job["attempt"] for job in jobs.values()),
            "effects recorded": recorded,
            "sink calls": desk["calls"],
            "duplicates": desk["duplicates"],
        }
        self._screen.step("Summary")
        self._screen.table([(name, str(value)) for name, value in rows.items()])

    def _only_held_are_left(self, jobs: Mapping[str, Document]) -> bool:
        """All others have ended, and each held one is in the middle of asking for its draft."""
        held = {call["ticket"] for call in self._provider.calls() if call["did"] == "hold"}
        return held == set(HELD) and all_ended(job for ticket, job in jobs.items() if ticket not in held)

    def _runs_again(self, _: Mapping[str, Document]) -> bool:
        attempts = self._attempts(KILLED)
        return len(attempts) > 1 and attempts[1]["end"] is None

    def _standing(self) -> dict[str, Document]:
        """All jobs by ticket; one that is nobody's by its id."""
        return {self._tickets.get(str(job["id"]), str(job["id"])): job for job in self._caller.jobs()}

    def _attempts(self, ticket: str) -> list[Document]:
        return self._caller.timeline(self._job_id(ticket))["attempts"]

    def _job_id(self, ticket: str) -> str:
        return self._answers[ticket][0].job_id

    def _until(self, what: str, holds: Callable[[Mapping[str, Document]], bool]) -> None:
        """Draws where all jobs stand until it holds. Raises `DemoFailed` after `WAIT_SECONDS`."""
        end = time.monotonic() + WAIT_SECONDS
        with self._screen.board():
            while True:
                jobs = self._standing()
                self._screen.jobs(jobs)
                if holds(jobs):
                    return
                if time.monotonic() > end:
                    raise DemoFailed(f"not within {WAIT_SECONDS:.0f} s: {what}")
                time.sleep(POLL_SECONDS)

    def _outlast(self, *words: str) -> str:
        """What the command says. Raises `DemoFailed` when it does not succeed."""
        done = self._stack.command(*words)
        if done.returncode != 0:
            raise DemoFailed(f"outlast {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def all_ended(jobs: Iterable[Document]) -> bool:
    return all(job["state"] in TERMINAL for job in jobs)
