"""What a supervisor tells its child, one JSON line on the child's standard input.

A child imports everything first and then waits for its orders, so that one kept ready takes over at once. The end of
that input means that the supervisor is gone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Orders:
    """Which incarnation to be. With `last_start` the child runs that job alone, then others so."""

    worker_id: UUID
    last_start: UUID | None = None

    @property
    def role(self) -> str:
        return "worker" if self.last_start is None else "solo"

    def line(self) -> bytes:
        last_start = None if self.last_start is None else str(self.last_start)
        return json.dumps({"worker_id": str(self.worker_id), "last_start": last_start}).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Raises `ValueError`, `KeyError` for a line that is no orders."""
        document = json.loads(line)
        last_start = document["last_start"]
        return cls(UUID(document["worker_id"]), None if last_start is None else UUID(last_start))
