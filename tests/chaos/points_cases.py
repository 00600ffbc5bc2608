"""The cases of the run at failpoints: how a job is brought to each, and what is right when a process ends there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.failpoints import Action, Point
from tests.chaos.handlers import KIND
from tests.chaos.records import Part


class Deed(StrEnum):
    """What brings a job to the point."""

    SUBMIT = "submit"
    """Its path leads there."""
    RUN = "run"
    """It runs, its effect is on record, and the process gets there meanwhile."""
    BEREAVE = "bereave"
    """The worker that runs it is killed."""
    REPLAY = "replay"
    """It is dead and replayed."""


class Until(StrEnum):
    """How long a process that was stopped there stays so."""

    OTHERS_END = "others end the job"
    ENTRY_TAKEN = "and take its entry over"
    MOMENT = "nobody else can"


@dataclass(frozen=True, slots=True)
class Case:
    """What is right at one point.

    `detail` narrows the order. `charged` are the crashes the job may have been charged by a kill or a stop, `calls` how
    often the outside may have been called. `raises`: an error is one more way to fail there that all of it survives.
    """

    point: Point
    charged: frozenset[int]
    detail: str = ""
    deed: Deed = Deed.SUBMIT
    calls: int = 1
    until: Until = Until.OTHERS_END
    redis_only: bool = False
    raises: bool = True

    @property
    def part(self) -> Part:
        return Part.PERMANENT if self.deed is Deed.REPLAY else Part.EFFECT

    @property
    def seconds(self) -> float:
        """How long the handler goes on after its effect."""
        return 0.6 if self.deed in {Deed.RUN, Deed.BEREAVE} else 0.0

    def charged_by(self, action: Action) -> frozenset[int]:
        if action is Action.RAISE and self.deed is not Deed.BEREAVE:
            return NOTHING
        return self.charged

    def can(self, action: Action, transport: str) -> bool:
        return (transport == "redis" or not self.redis_only) and (self.raises or action is not Action.RAISE)


NOTHING, A_CRASH, PERHAPS = frozenset({0}), frozenset({1}), frozenset({0, 1})
EFFECT = "file"

# Points of different processes take turns: a worker's child that was just started has time to settle.
CASES: tuple[Case, ...] = (
    Case(Point.CLAIM_DELIVERED, NOTHING, redis_only=True),
    Case(Point.SUBMIT_BEFORE_COMMIT, NOTHING, until=Until.MOMENT, raises=False),
    Case(Point.CLAIM_COMMITTED, A_CRASH),
    Case(Point.RELAY_BEFORE_PUBLISH, NOTHING, "default", redis_only=True),
    Case(Point.START_BEFORE, A_CRASH, KIND),
    Case(Point.REPLAY_BEFORE_COMMIT, NOTHING, deed=Deed.REPLAY, calls=0, until=Until.MOMENT, raises=False),
    Case(Point.EFFECT_BEFORE_INTENT, A_CRASH, EFFECT, raises=False),
    Case(Point.SUBMIT_AFTER_COMMIT, NOTHING, raises=False),
    Case(Point.EFFECT_INTENDED, A_CRASH, EFFECT, raises=False),
    Case(Point.RELAY_AFTER_PUBLISH, NOTHING, "default", redis_only=True),
    Case(Point.EFFECT_CALLED, A_CRASH, EFFECT, calls=2, raises=False),
    Case(Point.REPLAY_AFTER_COMMIT, NOTHING, deed=Deed.REPLAY, calls=0, raises=False),
    Case(Point.EFFECT_RECORDED, A_CRASH, EFFECT, raises=False),
    Case(Point.RESCUE_SEEN, A_CRASH, deed=Deed.BEREAVE),
    Case(Point.FINISH_RETURNED, A_CRASH, KIND),
    Case(Point.HEARTBEAT_BEFORE, PERHAPS, "worker", deed=Deed.RUN),
    Case(Point.FINISH_COMMITTED, NOTHING, until=Until.ENTRY_TAKEN),
    Case(Point.RESCUE_MOVED, A_CRASH, deed=Deed.BEREAVE),
    Case(Point.HEARTBEAT_AFTER, PERHAPS, "worker", deed=Deed.RUN),
    Case(Point.ACK_DONE, NOTHING, redis_only=True),
)
