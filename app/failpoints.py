"""Failpoints: named places on the path of a job where a test may kill, stop or fail the process that gets there.

`reach(point)` stands at each place. It costs one look at a global unless this process was started with
`OUTLAST_FAILPOINTS=<folder>`. Then a file in that folder named for a point (`finish.committed`), or for a point and
what it is about (`effect.called@charge`), is an order to the next process that gets there; its text is `kill`, `stop`
or `raise`. To obey is first to move the file to `fired/<name>.<pid>.<n>`, which only one can do: a file is one hit,
in whichever process, and nothing depends on time. Whoever stopped a process finds its pid there, and continues it.

`docs/failpoints.md` says what is right at each point.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import assert_never
from urllib.parse import quote

from app.domain.errors import FailpointRaised
from app.settings import Settings
from app.telemetry import log

FIRED = "fired"

Reached = Callable[["Point", str], None]


class Point(StrEnum):
    """Every boundary of a job's path. In brackets what `reach` tells about it, if anything."""

    SUBMIT_BEFORE_COMMIT = "submit.before_commit"
    """A request was accepted, nothing is stored."""
    SUBMIT_AFTER_COMMIT = "submit.after_commit"
    """The job is on record, nobody has been answered or woken."""
    RELAY_BEFORE_PUBLISH = "relay.before_publish"
    """The leader has read rows that wait, none is in the stream. (queue)"""
    RELAY_AFTER_PUBLISH = "relay.after_publish"
    """The stream has the entries, the leader has not remembered them. (queue)"""
    CLAIM_DELIVERED = "claim.delivered"
    """A worker has read entries, no lease is written."""
    CLAIM_COMMITTED = "claim.committed"
    """Leases are written in the worker's name, nothing runs."""
    START_BEFORE = "start.before"
    """An attempt begins, its handler has not been called. (kind)"""
    EFFECT_BEFORE_INTENT = "effect.before_intent"
    """The handler asked for an effect, nothing is on record. (key)"""
    EFFECT_INTENDED = "effect.intended"
    """The intent is on record, nothing was called. (key)"""
    EFFECT_CALLED = "effect.called"
    """The outside has accepted, the result is not on record. (key)"""
    EFFECT_RECORDED = "effect.recorded"
    """The result is on record, the handler does not have it yet. (key)"""
    FINISH_RETURNED = "finish.returned"
    """The handler has ended, what it came to is not written. (kind)"""
    FINISH_COMMITTED = "finish.committed"
    """The outcome is on record, the entry is not acknowledged."""
    ACK_DONE = "ack.done"
    """The broker has removed the entry."""
    HEARTBEAT_BEFORE = "heartbeat.before"
    """A process is about to say that it lives. (role)"""
    HEARTBEAT_AFTER = "heartbeat.after"
    """PostgreSQL has heard it, the process has not used the answer. (role)"""
    RESCUE_SEEN = "rescue.seen"
    """A process was found dead, its jobs are not taken back."""
    RESCUE_MOVED = "rescue.moved"
    """Its jobs are in the outbox, nobody was woken."""
    REPLAY_BEFORE_COMMIT = "replay.before_commit"
    """Dead letters were chosen, none has moved."""
    REPLAY_AFTER_COMMIT = "replay.after_commit"
    """They are in the outbox, nobody was woken or told."""


class Action(StrEnum):
    """What an order says."""

    KILL = "kill"
    """SIGKILL to the process itself."""
    STOP = "stop"
    """SIGSTOP to the process itself, until somebody sends SIGCONT."""
    RAISE = "raise"
    """`FailpointRaised`, which nobody expects and so counts as a fault of the place."""


_live = False
_folder: Path | None = None
_nth = count(1)
_watcher: ContextVar[Reached | None] = ContextVar("outlast_failpoints", default=None)


def reach(point: Point, detail: str = "") -> None:
    """Says that this process is at the point; `detail` is what it is about. Raises `FailpointRaised`, if so ordered."""
    if _live:
        _arrive(point, detail)


def arm(settings: Settings) -> None:
    """Obeys the folder of the settings, if they name one, from now to the end of this process."""
    global _live, _folder
    if settings.failpoints:
        _folder = Path(settings.failpoints).absolute()
        (_folder / FIRED).mkdir(exist_ok=True)
        _live = True
        log.warning("failpoints_armed", folder=str(_folder))


def disarm() -> None:
    """Obeys no folder."""
    global _live, _folder
    _live, _folder = False, None


@contextmanager
def watched(watcher: Reached) -> Iterator[None]:
    """What reaches a point within this context, tasks and threads it starts included, calls `watcher` instead."""
    global _live
    _live = True
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def order(folder: Path, action: Action, point: Point, detail: str = "") -> None:
    """Lays an order out, in one step. The same one twice, before it is obeyed, is one."""
    fresh = folder / f".{point}.new"
    fresh.write_text(action)
    fresh.replace(folder / _name(point, detail))


def fired(folder: Path, point: Point, detail: str = "") -> list[Path]:
    """The orders obeyed so far, oldest first; `pid_of` says by whom. A file's change time is when."""
    name = _name(point, detail)
    found = [path for path in (folder / FIRED).glob(f"{name}.*") if path.name.rsplit(".", 2)[0] == name]
    return sorted(found, key=lambda path: path.stat().st_ctime_ns)


def pid_of(obeyed: Path) -> int:
    """The process that obeyed."""
    return int(obeyed.name.rsplit(".", 2)[1])


def _arrive(point: Point, detail: str) -> None:
    watcher = _watcher.get()
    if watcher is not None:
        watcher(point, detail)
    elif _folder is not None:
        for name in dict.fromkeys((_name(point, detail), point.value)):
            _obey(_folder, name, point, detail)


def _obey(folder: Path, name: str, point: Point, detail: str) -> None:
    taken = folder / FIRED / f"{name}.{os.getpid()}.{next(_nth)}"
    try:
        if not (folder / name).stat().st_size:
            return  # it is being written
        (folder / name).rename(taken)
    except OSError:
        return
    action = Action(taken.read_text().strip())
    match action:
        case Action.KILL:
            # To this thread, not to any of the process: so none of its code runs on.
            signal.raise_signal(signal.SIGKILL)
        case Action.STOP:
            signal.raise_signal(signal.SIGSTOP)
        case Action.RAISE:
            raise FailpointRaised(f"ordered at {point}" + (f" of {detail}" if detail else ""))
        case _:
            assert_never(action)


def _name(point: Point, detail: str) -> str:
    return f"{point}@{quote(detail, safe='')}" if detail else point.value
