"""Callers: each submits errands under keys of its own, through any API, until it is answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from threading import Event, Lock, Semaphore, Thread
from typing import Self

import httpx

from tests.containers.site import Crew

KIND = "container.errand"
THREADS = 16
UNANSWERED_MAX = 64  # a machine that is too slow for the rate gets no pile of submits on top
PATIENCE_SECONDS = 30.0
AGAIN_SECONDS = 0.2
ANSWER_SECONDS = 10.0
ACCEPTED = {HTTPStatus.OK, HTTPStatus.ACCEPTED}
FOR_NOW = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE}


class Callers:
    """`accepted` maps a name to the id that was answered, `failed` says who gave up, `retried` counts second tries.

    `replayed` counts submits whose first answer was lost: the key had made a job already.
    """

    def __init__(self, crew: Crew, prefix: str, *, effects: int = 1, pause_seconds: float = 0) -> None:
        self.crew = crew
        self.prefix = prefix
        self.effects = effects
        self.pause_seconds = pause_seconds
        self.accepted: dict[str, str] = {}
        self.failed: list[str] = []
        self.retried = 0
        self.replayed = 0
        self.per_second = 0.0
        self.repeated_before = crew.ground.repeated_calls()
        self._lock = Lock()
        self._room = Semaphore(UNANSWERED_MAX)
        self._count = 0
        self._pool = ThreadPoolExecutor(THREADS)
        self._under_way: list[Future[None]] = []
        headers = {"Authorization": f"Bearer {crew.token}"}
        self._apis = [httpx.Client(base_url=url, headers=headers, timeout=ANSWER_SECONDS) for url in crew.urls]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        for api in self._apis:
            api.close()

    def submit(self, count: int) -> None:
        """So many errands, all answered before it returns."""
        for _ in range(count):
            self._call()
        self.finish()

    @contextmanager
    def steadily(self, per_second: float) -> Iterator[None]:
        """Errands at this rate for as long as the block takes, all answered at its end; `per_second` is what it was."""
        over = Event()
        began = time.monotonic()

        def beat() -> None:
            for number in range(1, 1_000_000):
                self._call()
                if over.wait(max(0.0, began + number / per_second - time.monotonic())):
                    return

        beating = Thread(target=beat)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()
            self.per_second = self._count / (time.monotonic() - began)
            self.finish()

    def finish(self) -> None:
        """Waits for the answers to everything submitted. Raises what went wrong with any."""
        for call in self._under_way:
            call.result(2 * PATIENCE_SECONDS)
        self._under_way.clear()

    def _call(self) -> None:
        self._room.acquire()
        self._count += 1
        self._under_way.append(self._pool.submit(self._submit, self._count))

    def _submit(self, number: int) -> None:
        try:
            self._submit_until_answered(number)
        finally:
            self._room.release()

    def _submit_until_answered(self, number: int) -> None:
        """One errand, through one API after the other."""
        name = f"{self.prefix}-{number}"
        errand = {"name": name, "effects": self.effects, "pause_seconds": self.pause_seconds}
        said = ""
        end = time.monotonic() + PATIENCE_SECONDS
        for turn in range(number, number + 100_000):
            api = self._apis[turn % len(self._apis)]
            try:
                answer = api.post("/v1/jobs", json={"kind": KIND, "input": errand}, headers={"Idempotency-Key": name})
                if answer.status_code in ACCEPTED:
                    self._accept(name, answer)
                    return
                said = f"{answer.status_code} {answer.text[:300]}"
                assert answer.status_code in FOR_NOW, said
            except httpx.TransportError as error:
                said = type(error).__name__
            if time.monotonic() > end:
                break
            with self._lock:
                self.retried += 1
            time.sleep(AGAIN_SECONDS)
        self.failed.append(f"{name}: {said}")

    def _accept(self, name: str, answer: httpx.Response) -> None:
        with self._lock:
            self.accepted[name] = answer.json()["id"]
            self.replayed += answer.headers.get("Idempotent-Replayed") == "true"
