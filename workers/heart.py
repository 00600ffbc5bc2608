"""The heartbeat of one worker process, from a thread with a connection of its own.

A busy event loop cannot starve it. Its session also holds the incarnation's advisory lock, so that a killed process
is told from a frozen one. Every answer, the leases in this process's name, goes to the event loop: it is the truth.

Whether there are others than the process knows of it asks when there is a reason for doubt, and else as often as that
takes at most a hundredth of the time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.failpoints import Point, reach
from app.settings import Settings
from app.store.database import Session, connect
from app.store.fleet import Beat, Incarnation, beat, register, relock
from app.store.revision import refuse_older
from app.telemetry import frames, log
from workers.guarding.loop_watch import LoopWatch

RECONNECT_SECONDS = 0.2
JOIN_SECONDS = 2.0
POLL_SECONDS = 0.01
PAUSE_SECONDS = 0.05
AT_MOST_A_HUNDREDTH = 100
LOOKS_IN_DOUBT = 3  # what is there without a reason at two looks is given back, and may come after the first


@dataclass(frozen=True, slots=True)
class Answer:
    """A heartbeat's answer; `sent_at` is when it was sent, in monotonic seconds."""

    beat: Beat
    sent_at: float


class Heart:
    """Beats until stopped. Made on the event loop that `on_answer` is called on, and that `watch` watches.

    `mine` are the jobs that the process believes to hold; it is called from the thread.
    """

    def __init__(
        self,
        settings: Settings,
        me: Incarnation,
        on_answer: Callable[[Answer], None],
        watch: LoopWatch | None = None,
        mine: Callable[[], Sequence[UUID]] = tuple,
    ) -> None:
        self.broker_ok: bool | None = None
        self.draining = False
        self.leader = False
        self._settings = settings
        self._me = me
        self._on_answer = on_answer
        self._watch = watch
        self._mine = mine
        self._all_at = self._doubted_at = self._doubt_seen = float("-inf")
        self._looks_in_doubt = 0
        self._loop = asyncio.get_running_loop()
        self._lock_key: int | None = None
        self._answered_sent_at = float("-inf")
        self._pulse = asyncio.Event()
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._thread_main, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """Ends the thread and with it the session that holds the lock."""
        self._stopping.set()
        # Not joined in a thread of the loop's own pool: that is the handlers' to fill up, or to close.
        end = time.monotonic() + JOIN_SECONDS
        while self._thread.is_alive() and time.monotonic() < end:  # noqa: ASYNC110  # a thread has no event
            await asyncio.sleep(POLL_SECONDS)

    def silent_seconds(self) -> float:
        """How long ago the last heartbeat that was answered was sent: no one may trust us for longer."""
        return time.monotonic() - self._answered_sent_at

    def fresh(self) -> bool:
        """Whether an outside call may begin: nobody can have called us dead yet, nor will while it starts."""
        return self.silent_seconds() < self._settings.suspect_seconds - self._settings.heartbeat_seconds / 2

    def doubt(self) -> None:
        """There may be leases in our name that nobody here knows of: the reply to a claim was lost."""
        self._doubted_at = time.monotonic()

    async def next_answer(self) -> None:
        """Returns at the next answered heartbeat, which is sent without waiting for its time."""
        self._wanted.set()
        await self._pulse.wait()

    def _thread_main(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        watching = None if self._watch is None else asyncio.create_task(self._watch.run())
        try:
            await self._beat_on()
        finally:
            if watching is not None:
                watching.cancel()

    async def _beat_on(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._session()
            except DatabaseAway as error:
                log.warning("heartbeat_not_heard", error=str(error), silent_seconds=round(self.silent_seconds(), 1))
                await asyncio.sleep(RECONNECT_SECONDS)
            except Exception as error:
                # Whatever it is, nobody else beats for this process, and without a heart it would neither work nor end.
                log.error("heart_failed", error_type=type(error).__qualname__, where=frames(error))
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _session(self) -> None:
        connection = await connect(self._settings, "heartbeat", timeout_seconds=self._settings.suspect_seconds)
        try:
            if self._lock_key is None:
                await refuse_older(connection)
                self._lock_key = await register(connection, self._me)
            # Also after registering: a session that is gone for us, but not yet for the server, may still hold it.
            locked = False
            while not self._stopping.is_set():
                locked = locked or await relock(connection, self._lock_key)
                await self._beat(connection)
                await self._pause()
        finally:
            connection.terminate()

    async def _beat(self, connection: Session) -> None:
        reach(Point.HEARTBEAT_BEFORE, self._me.role)
        self._wanted.clear()
        sent_at = time.monotonic()  # before it is asked what is held: what comes later this answer does not judge
        of = None if self._asks_for_all(sent_at) else self._mine()
        heard = await beat(
            connection, self._me.id, broker_ok=self.broker_ok, draining=self.draining, leader=self.leader, of=of
        )
        if of is None:
            ended_at = time.monotonic()
            self._all_at = ended_at + AT_MOST_A_HUNDREDTH * (ended_at - sent_at)
            self._looks_in_doubt = max(0, self._looks_in_doubt - 1)
        reach(Point.HEARTBEAT_AFTER, self._me.role)
        if heard.known:
            self._answered_sent_at = sent_at
        self._loop.call_soon_threadsafe(self._deliver, Answer(heard, sent_at))

    def _asks_for_all(self, now: float) -> bool:
        if self._doubt_seen != (doubted_at := self._doubted_at):
            self._doubt_seen, self._looks_in_doubt = doubted_at, LOOKS_IN_DOUBT
        return self._looks_in_doubt > 0 or now >= self._all_at

    async def _pause(self) -> None:
        end = time.monotonic() + self._settings.heartbeat_seconds
        while time.monotonic() < end and not self._stopping.is_set():
            await asyncio.sleep(min(PAUSE_SECONDS, self._settings.heartbeat_seconds))
            if self._wanted.is_set():
                return

    def _deliver(self, answer: Answer) -> None:
        self._on_answer(answer)
        self._pulse.set()
        self._pulse = asyncio.Event()
