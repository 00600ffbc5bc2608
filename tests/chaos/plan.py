"""From a seed to what happens when: the same seed gives the same plan, on every machine."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.promises import Promise
from tests.chaos.records import Part

# What part N of the scenarios asks of a load, in percent.
MIX: Mapping[Part, int] = {Part.OK: 70, Part.FLAKY: 10, Part.SLOW: 10, Part.PERMANENT: 5, Part.EFFECT: 5}
SCHEDULED_SHARE = 0.05
DELAY_SECONDS = (0.2, 2.0)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run is made of. `faults` counts what is fired, by name; `seconds` are how long the load goes on.

    `wanted` is the least that must have been seen for the run to count (`checker.bites`), faults included;
    `cancel_share` of the jobs are cancelled, each up to `cancel_seconds` after its submit, most of them soon;
    `charges` says whether a job may be charged a crash at all; `at_once` faults may last at the same time, and a fault
    that lasts and is not over by itself lasts `lasting_seconds`; `refuses` says whether any submit may be answered with
    503; `clocks` are how many seconds the wall clocks of `api`, `relay` and `worker` are off from the start; `promises`
    say what must be back and how soon; `once` says that no job may be started twice.
    """

    name: str
    title: str
    jobs: int
    seconds: float
    faults: Mapping[str, int]
    wanted: Mapping[str, int] = field(default_factory=dict[str, int])
    mix: Mapping[Part, int] = field(default_factory=lambda: MIX)
    slow_seconds: tuple[float, float] = (0.05, 0.5)
    settings: Mapping[str, float] = field(default_factory=dict[str, float])
    cancel_share: float = 0.0
    cancel_seconds: float = 0.3
    charges: bool = True
    workers: int = 2
    at_once: int = 1
    lasting_seconds: float = 10.0
    refuses: bool = True
    clocks: Mapping[str, float] = field(default_factory=dict[str, float])
    promises: Sequence[Promise] = ()
    once: bool = False

    @property
    def footing(self) -> tuple[object, ...]:
        """What the processes are started with: runs on the same footing can share them."""
        return self.workers, sorted(self.settings.items()), sorted(self.clocks.items())


@dataclass(frozen=True, slots=True)
class Submit:
    """A job to submit `at` seconds after the start of the run."""

    at: float
    key: str
    part: Part
    seconds: float
    delay_seconds: float
    cancel_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault to fire `at` seconds after the start; `draw` in [0, 1) decides what it leaves open."""

    at: float
    name: str
    draw: float


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    shape: Shape
    submits: tuple[Submit, ...]
    faults: tuple[Fault, ...]


def plan(shape: Shape, seed: int) -> Plan:
    """Submits spread over the run, and the faults in a random order, evenly apart with some jitter."""
    dice = random.Random(f"{shape.name}:{seed}")
    parts = dice.choices(list(shape.mix), weights=list(shape.mix.values()), k=shape.jobs)
    times = sorted(dice.uniform(0, shape.seconds) for _ in parts)
    submits = tuple(
        _submit(dice, shape, number, at, part) for number, (at, part) in enumerate(zip(times, parts, strict=True))
    )
    names = [name for name, count in shape.faults.items() for _ in range(count)]
    dice.shuffle(names)
    apart = shape.seconds / (len(names) + 1)
    faults = tuple(
        Fault((number + 1 + dice.uniform(-0.3, 0.3)) * apart, name, dice.random()) for number, name in enumerate(names)
    )
    return Plan(seed, shape, submits, faults)


def _submit(dice: random.Random, shape: Shape, number: int, at: float, part: Part) -> Submit:
    seconds = dice.uniform(*shape.slow_seconds) if part in {Part.SLOW, Part.EFFECT} else 0.0
    delay = round(dice.uniform(*DELAY_SECONDS), 3) if dice.random() < SCHEDULED_SHARE else 0.0
    cancel = shape.cancel_seconds * dice.random() ** 3 if dice.random() < shape.cancel_share else None
    return Submit(at, f"{shape.name}-{number:05d}", part, round(seconds, 3), delay, cancel)
