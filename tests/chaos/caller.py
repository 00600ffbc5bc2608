"""The clients of a run: they submit, cancel, try again with the same key, and write down every call twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.handlers import KIND
from tests.chaos.plan import Submit
from tests.chaos.records import Call, Phase, Verb

CALL_SECONDS = 12.0
AGAIN_SECONDS = 0.1
CLIENTS = 8
TRY_AGAIN = frozenset({429, 503})


class Caller:
    """Clients of one API. `calls` is the client log; it also goes to a file, line by line."""

    def __init__(self, url: str, log: Path, work: dict[str, str]) -> None:
        self.calls: list[Call] = []
        self._work = work
        self._file = log.open("a", buffering=1)
        limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
        self._http = httpx.AsyncClient(base_url=url, timeout=CALL_SECONDS, limits=limits, verify=False)

    async def submit_all(self, submits: Sequence[Submit]) -> None:
        """Submits each at its time until it is accepted, and cancels those that are to be cancelled."""
        began, room = time.monotonic(), asyncio.Semaphore(CLIENTS)

        async def one(submit: Submit) -> None:
            async with room:
                job_id = await self.submit(submit)
            if submit.cancel_after_seconds is not None:
                await asyncio.sleep(submit.cancel_after_seconds)
                await self.cancel(job_id)

        async with asyncio.TaskGroup() as tasks:
            for submit in submits:
                await asyncio.sleep(began + submit.at - time.monotonic())
                tasks.create_task(one(submit))

    async def submit(self, submit: Submit) -> str:
        """The id of the job."""
        delay = {"delay_seconds": submit.delay_seconds} if submit.delay_seconds else {}
        body = {
            "kind": KIND,
            "input": {"part": submit.part, "seconds": submit.seconds, **self._work},
            "metadata": {"key": submit.key, "part": submit.part, "delay_seconds": submit.delay_seconds},
            **delay,
        }
        headers = {"Idempotency-Key": submit.key}
        return await self._until_answered(Verb.SUBMIT, submit.key, "", "/v1/jobs", body, headers)

    async def cancel(self, job_id: str) -> None:
        """Asks for the job's end; that it has ended already is an answer too."""
        path = f"/v1/jobs/{job_id}/cancel"
        await self._until_answered(Verb.CANCEL, job_id, job_id, path, {"reason": "a race"}, {})

    async def healthy(self) -> bool:
        """Whether the API answers and knows the kind of the load."""
        try:
            answer = await self._http.get("/v1/kinds")
        except httpx.TransportError:
            return False
        return answer.is_success and any(kind["name"] == KIND for kind in answer.json()["data"])

    async def close(self) -> None:
        await self._http.aclose()
        self._file.close()

    async def _until_answered(
        self, verb: Verb, key: str, job_id: str, path: str, body: dict[str, Any], headers: dict[str, str]
    ) -> str:
        while True:
            self._note(Call(time.time(), Phase.BEFORE, verb, key, job_id=job_id))
            try:
                answer = await self._http.post(path, json=body, headers=headers)
            except httpx.TransportError:
                self._note(Call(time.time(), Phase.CUT, verb, key, job_id=job_id))
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            found = answer.json().get("id", job_id) if answer.is_success else job_id
            after = answer.headers.get("Retry-After", "")
            self._note(Call(time.time(), Phase.AFTER, verb, key, answer.status_code, found, after))
            if answer.status_code not in TRY_AGAIN:
                return found
            await asyncio.sleep(AGAIN_SECONDS)

    def _note(self, call: Call) -> None:
        self.calls.append(call)
        self._file.write(f"{call.at:.6f} {call.phase} {call.verb} {call.key} {call.status} {call.job_id}\n")
