"""Calls that must not be cut off: from the intent to the record of what must not be called twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from app.domain.states import Policy

_NO_MATTER = nullcontext()


class Uncut:
    """Those of one attempt that are in flight."""

    def __init__(self) -> None:
        self._count = 0
        self._one_ended: asyncio.Event | None = None

    @property
    def any(self) -> bool:
        return self._count > 0

    async def none_left(self) -> None:
        """Returns once no such call is in flight; with `releasing` set no new one begins."""
        while self._count:
            ended = self._one_ended = self._one_ended or asyncio.Event()
            ended.clear()
            await ended.wait()

    def held(self, policy: Policy) -> AbstractContextManager[None]:
        """Holds back a release while a call of this policy is in flight; one that can be repeated is no matter."""
        return _NO_MATTER if policy is Policy.REPEATABLE else self._counted()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            if self._one_ended is not None:
                self._one_ended.set()
